"""`provision site check`: whether a profile is complete and right, without looking at the machine that it describes."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from provision.commands.shared.offer import CANNOT_WORK, cannot_work, judge_profile
from provision.commands.shared.outcome import Args, Outcome
from provision.commands.shared.target import make_target
from provision.errors import EXIT_FAILED, EXIT_OK, ConfigError
from provision.jobs.build_job import build_batch
from provision.knowledge.targets import require_known_target
from provision.knowledge.versions import ascending
from provision.machine.configuration import shipped
from provision.model.check import Check, State, observed
from provision.profile.site import blank_paths, find_faults
from provision.wording import count


def run(args: Args) -> Outcome:
    """Check one profile, with the stack and the job of each arch."""
    data, path = shipped.load_profile(args.site)
    blank = blank_paths(data)
    faults = find_faults(data, str(path), shipped.environment())
    checks = [observed("profile", "bad", f'{key}: is "?"') for key in blank]
    for line, (key, _, _) in zip(faults.lines, faults.found, strict=True):
        if key.partition("[")[0] not in blank:
            checks.append(observed("profile", "bad", line))
    if not checks:
        checks = [observed("profile", "good", f"`{path}` has no faults"), *_parts(args.site)]
    checks += [observed("profile", "note", line) for line in _unconfirmed(data)]
    bad = sum(check.state == "bad" for check in checks)
    lines = [line for check in checks for line in check.to_lines()]
    typed = shlex.quote(args.site)
    lines += ["", count(bad, "fault") if bad else f"no faults; next: `provision doctor --site {typed}`"]
    lines += [f"hint: edit `{path}`, then `provision site check {typed}`"] if bad else []
    return Outcome(
        text="\n".join(lines),
        result={
            "profile": str(path),
            "observations": [check.to_observation() for check in checks],
            "bad": bad,
        },
        exit_code=EXIT_FAILED if bad else EXIT_OK,
    )


def _parts(name: str) -> Iterator[Check]:
    """What the profile names: the stack of each arch with its locks, the CPU, and the job of a build."""
    site = shipped.load_site(name)
    for arch in site.archs:
        group, of = f"arch {arch.name}", f"arch `{arch.name}`"
        try:
            require_known_target(arch.target)
            target = make_target(site, arch.name, None)
            for minor in target.stack.pythons:
                target.request_for(minor)
            if site.scheduler.name != "none":
                account = arch.job.account or "ACCOUNT"
                build_batch(site, arch, target.stack, f"provision-{arch.name}", "jobs", account)
        except ConfigError as error:
            yield observed(group, "bad", f"{of}: {error.message}", hint=error.hint)
            continue
        against, cannot = judge_profile(site, arch, target.stack)[0], cannot_work(site)
        if against:
            state: State = "bad" if cannot == CANNOT_WORK else "note"
            compat = f"`provision compat --site {site.typed} --arch {arch.name}` shows which stacks work"
            yield observed(group, state, f"{of}: {cannot}: {target.stack.name} {'; '.join(against)}", hint=compat)
        else:
            pythons = ", ".join(ascending(target.stack.pythons))
            yield observed(group, "good", f"{of}: stack `{target.stack.name}`, locked for Python {pythons}")


def _unconfirmed(data: Mapping[str, Any]) -> list[str]:
    """The values that no text confirms, as the profile itself says."""
    sources = data.get("sources")
    tables = sources.values() if isinstance(sources, Mapping) else ()
    return [
        f"not confirmed: {', '.join(map(str, table.get('values', ())))} ({table.get('text', 'no source')})"
        for table in tables
        if isinstance(table, Mapping) and table.get("sure") is False
    ]
