"""`provision site check`: whether a profile is complete and right, without looking at the machine that it describes."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping
from typing import Any

from provision.commands.shared.offer import CANNOT_WORK, cannot_work, judge_profile
from provision.commands.shared.outcome import Outcome
from provision.commands.shared.target import make_target
from provision.errors import EXIT_FAILED, EXIT_OK, ConfigError
from provision.jobs.build_job import build_batch
from provision.knowledge.targets import require_known_target
from provision.machine.configuration import shipped
from provision.model.observation import MARKS, Observation
from provision.profile.site import blank_paths, find_faults
from provision.wording import count


def run(args: argparse.Namespace) -> Outcome:
    """Check one profile, with the stack and the job of each arch."""
    data, path = shipped.load_profile(args.site)
    blank = blank_paths(data)
    faults = find_faults(data, str(path), shipped.environment())
    observations = [_of("profile", "bad", f'{key}: is "?"') for key in blank]
    for line, (key, _, _) in zip(faults.lines, faults.found, strict=True):
        if key.partition("[")[0] not in blank:
            observations.append(_of("profile", "bad", line))
    if not observations:
        observations = [_of("profile", "good", f"`{path}` has no faults"), *_parts(args.site)]
    observations += [_of("profile", "note", line) for line in _unconfirmed(data)]
    bad = sum(observation.state == "bad" for observation in observations)
    lines = []
    for observation in observations:
        lines.append(f"{MARKS[observation.state]} {observation.message}")
        lines += [f"    hint: {observation.hint}"] if observation.hint else []
    typed = shlex.quote(args.site)
    lines += ["", count(bad, "fault") if bad else f"no faults; next: `provision doctor --site {typed}`"]
    lines += [f"hint: edit `{path}`, then `provision site check {typed}`"] if bad else []
    return Outcome(
        text="\n".join(lines),
        result={
            "profile": str(path),
            "observations": [observation.to_dict() for observation in observations],
            "bad": bad,
        },
        exit_code=EXIT_FAILED if bad else EXIT_OK,
    )


def _of(group: str, state: Any, message: str, hint: str | None = None) -> Observation:
    return Observation(group=group, state=state, message=message, hint=hint)


def _parts(name: str) -> list[Observation]:
    """What the profile names: the stack of each arch with its locks, the CPU, and the job of a build."""
    site = shipped.load_site(name)
    observations = []
    for arch in site.archs:
        group = f"arch {arch.name}"
        try:
            require_known_target(arch.target)
            target = make_target(site, arch.name, None)
            for minor in target.stack.pythons:
                target.request_for(minor)
            if site.scheduler.name != "none":
                account = arch.job.account or "ACCOUNT"
                build_batch(site, arch, target.stack, f"provision-{arch.name}", "jobs", account)
        except ConfigError as error:
            observations.append(_of(group, "bad", f"arch `{arch.name}`: {error.message}", error.hint))
        else:
            against, cannot = judge_profile(site, arch, target.stack)[0], cannot_work(site)
            if against:
                state = "bad" if cannot == CANNOT_WORK else "note"
                message = f"arch `{arch.name}`: {cannot}: {target.stack.name} {'; '.join(against)}"
                compat = f"`provision compat --site {site.typed} --arch {arch.name}` shows which stacks work"
                observations.append(_of(group, state, message, compat))
                continue
            pythons = ", ".join(target.stack.pythons)
            observations.append(
                _of(group, "good", f"arch `{arch.name}`: stack `{target.stack.name}`, locked for Python {pythons}")
            )
    return observations


def _unconfirmed(data: Mapping[str, Any]) -> list[str]:
    """The values that no text confirms, as the profile itself says."""
    sources = data.get("sources")
    tables = sources.values() if isinstance(sources, Mapping) else ()
    return [
        f"not confirmed: {', '.join(map(str, table.get('values', ())))} ({table.get('text', 'no source')})"
        for table in tables
        if isinstance(table, Mapping) and table.get("sure") is False
    ]
