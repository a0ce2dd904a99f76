"""`provision upgrade STACK`: newer packages on all archs where users load it: built beside, proved, published on all or none."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provision.commands.build import plan_and_build
from provision.commands.fetch import fetch_missing
from provision.commands.shared.after_publish import after_publish
from provision.commands.shared.environments import read_store
from provision.commands.shared.hints import complete_error
from provision.commands.shared.order import Order
from provision.commands.shared.outcome import Outcome
from provision.commands.shared.submitting import build_in_jobs
from provision.commands.shared.target import Target, make_target
from provision.commands.shared.typos import refuse_submit, refuse_unused
from provision.errors import EXIT_JOB_LEFT, ConfigError, ProvisionError, StoreError
from provision.machine.configuration import shipped
from provision.machine.configuration.shipped import use_locks
from provision.machine.files.tables import read_advisories
from provision.machine.network.lock_compiler import newer_locks
from provision.machine.probes.installed_packages import installed_versions
from provision.machine.root.store import Store
from provision.machine.root.upgrades import Switched, Upgrades, refuse_unwritable
from provision.machine.terminal.console import say, say_error
from provision.model.facts import Facts, Interpreter
from provision.model.layout import EnvironmentId
from provision.model.plan import Plan
from provision.model.request import Request
from provision.model.upgrade import ArchUpgrade, Upgrade
from provision.planning.preflight import network_faults
from provision.planning.publication import changes, planned_versions, short
from provision.planning.upgrade_changes import UpgradeChanges, change_lines, upgrade_changes
from provision.profile.site import Site

# Of the evidence of each arch that failed.
MOST_LINES = 4
NOTHING = "nothing to do: users load what the newest locks give"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One arch: what is built there, what this machine knows of it, and what users load there now."""

    target: Target
    facts: Facts
    before: EnvironmentId | None

    @property
    def arch(self) -> str:
        """The name of the arch in the profile."""
        return self.target.arch.name

    @property
    def python(self) -> Interpreter:
        """The Python that the arch gets."""
        assert self.facts.python is not None  # a fault says so otherwise
        return self.facts.python


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeStep:
    """What the upgrade does on one arch."""

    part: Part
    plan: Plan
    changes: UpgradeChanges

    @property
    def needed(self) -> bool:
        """Whether users do not load yet what the newer lock gives."""
        return self.part.before != self.plan.environment

    def to_dict(self) -> dict[str, Any]:
        """This step as plain JSON values."""
        return {
            "arch": self.part.arch,
            "before": str(self.part.before) if self.part.before else None,
            "after": str(self.plan.environment),
            "proved": self.plan.done,
            "changes": self.changes.to_dict(),
        }


def run(args: argparse.Namespace) -> Outcome:
    """Compile newer locks, build beside what users load, and publish all archs or none."""
    _refuse(args)
    site = shipped.load_site(args.site)
    refuse_submit(args, site)
    store = read_store(site)
    upgrades = Upgrades(store, args.stack)
    if args.dry_run:
        with _locks(args, upgrades, parts := find_parts(args, site)):
            return _shown(args, make_steps(parts))
    with upgrades.held():
        left = upgrades.read()
        if left is not None and left.state == "undoing" and not args.undo:
            say("an upgrade was being taken back: finishing that first")
            upgrades.undo(left)
        if left is not None and left.state == "publishing" and not args.undo:
            say("an upgrade was being published: finishing that first")
            return _published(args, site, store, upgrades.publish(left))
        if args.undo:
            return _undo(args, site, store, upgrades)
        parts = find_parts(args, site)
        with _locks(args, upgrades, parts) as folder:
            return _upgrade(args, site, upgrades, parts, folder)


def _refuse(args: argparse.Namespace) -> None:
    if args.undo:
        why = "`--undo` only changes what users load"
        refuse_unused(args, why, "--arch", "--locks", "--recompile", "--submit", "--dry-run")
    if not args.submit:
        refuse_unused(args, "there is no job", "--no-wait", "--account")
    if args.locks:
        refuse_unused(args, "`--locks` names the locks", "--recompile")


def _locks(args: argparse.Namespace, upgrades: Upgrades, parts: list[Part]) -> contextlib.AbstractContextManager[Path]:
    """A folder with the newer locks, which everything inside uses."""
    paths = lock_paths(parts)
    left = None if args.dry_run or args.recompile or args.locks else upgrades.read()
    kept = upgrades.kept(list(paths)) if left is not None and left.state == "building" else {}
    if kept:
        say("using the newer locks of the upgrade that did not end; `--recompile` compiles them again")
    locks = {path: (part.target.stack.name, part.python) for path, part in paths.items()}
    return newer_locks(args.stack, locks, args.locks, kept)


def _shown(args: argparse.Namespace, steps: list[UpgradeStep]) -> Outcome:
    say_steps(args, steps)
    needed = [step for step in steps if step.needed]
    text = f"{len(needed)} of {len(steps)} archs would change" if needed else NOTHING
    if needed:
        again = [word for name in args.archs or () for word in ("--arch", name)]
        again += ["--locks", args.locks] if args.locks else []
        site = steps[0].part.target.site.typed
        text += (
            f"; `{shlex.join(['provision', 'upgrade', args.stack, '--site', site, *again])}` builds and publishes it"
        )
    return _outcome(args, "planned" if needed else "nothing", steps, text=text)


def _upgrade(args: argparse.Namespace, site: Site, upgrades: Upgrades, parts: list[Part], folder: Path) -> Outcome:
    """Build what is missing, and publish when every arch is proved."""
    steps = make_steps(parts)
    say_steps(args, steps)
    needed = [step for step in steps if step.needed]
    if not needed:
        return _outcome(args, "nothing", steps, text=NOTHING)
    todo = [step.part.arch for step in needed if not step.plan.done]
    if len(todo) > 1 and site.scheduler.name != "none" and not args.submit:
        raise ConfigError(
            f"{len(todo)} archs cannot be built on this machine at once: {', '.join(todo)}",
            hint="add `--submit`: each arch is built in a job of its own",
        )
    paths = list(lock_paths([step.part for step in needed]))
    refuse_unwritable(paths, args.stack)
    archs = [ArchUpgrade(arch=step.part.arch, before=step.part.before, after=step.plan.environment) for step in needed]
    upgrade = Upgrade(stack=args.stack, state="building", archs=tuple(archs), locks=tuple(map(str, paths)))
    upgrade = upgrades.begin(upgrade, folder)
    with use_locks(str(upgrades.newer)):  # jobs see this folder, and not the temporary one
        _fetch(needed)
        errors, jobs = _build(args, todo)
    if jobs:
        text = "\n".join(f"{arch}  submitted, job {number}" for arch, number in jobs.items())
        say("the same command without `--submit` publishes when all jobs have ended")
        return _outcome(args, "submitted", steps, text=text, jobs=jobs, exit_code=EXIT_JOB_LEFT)
    proved = [step for step in needed if step.part.target.store.record(step.plan.environment) is not None]
    if len(proved) < len(needed):
        _refuse_unproved(args, needed, proved, errors)
    return _published(args, site, upgrades.store, upgrades.publish(upgrade), steps)


def _fetch(steps: list[UpgradeStep]) -> None:
    """Download the newer packages, if the nodes that build have no network."""
    for step in steps:
        target, facts = step.part.target, step.part.facts
        request = target.request(facts)
        if network_faults(request, target.plan(request, facts)):
            fetch_missing(target.store, request)


def _build(args: argparse.Namespace, archs: list[str]) -> tuple[dict[str, ProvisionError], dict[str, str]]:
    """Build and prove these archs; the error of each that failed, and the jobs that were left running."""
    order = Order(
        site=args.site,
        arch=None,
        stack=args.stack,
        account=args.account,
        publish=False,
        wait=not args.no_wait,
        verbose=args.verbose,
    )
    errors: dict[str, ProvisionError] = {}
    if args.submit and archs:
        builds = build_in_jobs(order, archs)
        errors = {build.arch: build.error for build in builds if build.error}
        waiting = [build for build in builds if build.state == "submitted" and build.job]
        return errors, {build.arch: str(build.job) for build in waiting}
    for arch in archs:
        say(f"building on arch {arch}")
        try:
            plan_and_build(dataclasses.replace(order, arch=arch))
        except ProvisionError as error:
            if error.kind == "interrupted":
                raise
            errors[arch] = complete_error(error, order.subject(arch))
            say_error(error, arch)
    return errors, {}


def _refuse_unproved(
    args: argparse.Namespace, steps: list[UpgradeStep], proved: list[UpgradeStep], errors: Mapping[str, ProvisionError]
) -> None:
    """Raise: nothing is published, because not all archs are proved."""
    lost = [step.part.arch for step in steps if step not in proved]
    evidence = []
    for arch in lost:
        error = errors.get(arch)
        evidence.append(f"{arch}: {error.message if error else 'it is not proved'}")
        evidence += [f"  {line}" for line in (error.evidence[:MOST_LINES] if error else ())]
    evidence += [f"{step.part.arch}: proved, not published: {step.plan.environment}" for step in proved]
    first = errors.get(lost[0])
    raise StoreError(
        f"the upgrade of `{args.stack}` failed on {', '.join(f'`{arch}`' for arch in lost)}, so nothing was published",
        evidence=evidence,
        hint="remove the cause, then run the same command again: it keeps what is proved; or change the input of the lock. "
        "`provision prune` removes what is not published",
        kind="unproved",
        log=first.log if first else None,
    )


def _published(
    args: argparse.Namespace, site: Site, store: Store, done: list[Switched], steps: list[UpgradeStep] | None = None
) -> Outcome:
    """Run the hook of the site, and describe what users load."""
    lines = switched_lines(site, store, done)
    lines.append(f"back on all archs: `provision upgrade {args.stack} --undo --site {site.typed}`")
    return _outcome(args, "published", steps or [], text="\n".join(lines), loads=_loads(store, done))


def _undo(args: argparse.Namespace, site: Site, store: Store, upgrades: Upgrades) -> Outcome:
    """Take the last upgrade back."""
    last = upgrades.read()
    if last is None or last.state in ("building", "undone"):
        raise ConfigError(
            f"there is no upgrade of `{args.stack}` to take back",
            evidence=["the last one was taken back" if last and last.state == "undone" else "none was published"],
            hint="`provision rollback` goes back to the generation before, on one arch",
            kind="no-generation",
        )
    done = upgrades.undo(last)
    text = "\n".join(switched_lines(site, store, done))
    return _outcome(args, "undone", [], text=text, loads=_loads(store, done))


def _loads(store: Store, done: list[Switched]) -> dict[str, str | None]:
    """What users load on each arch now."""
    pointers = store.pointers()
    return {one.arch.arch: pointers.get(one.arch.after.pointer) for one in done}


def switched_lines(site: Site, store: Store, done: list[Switched]) -> list[str]:
    """What changed on each arch, as lines; runs the hook of the site."""
    lines = []
    for one in done:
        name = one.arch.after.arch
        if one.change is not None:
            what = changes(one.change.before, one.change.after) or ["no module changes"]
            lines += [f"arch {one.arch.arch}: {line}" for line in what]
            after_publish(site, store, "upgrade", name, str(one.arch.after))
        elif one.note:
            lines.append(f"arch {one.arch.arch}: {one.note}")
    return lines or ["no module changes"]


def _outcome(
    args: argparse.Namespace,
    state: str,
    steps: list[UpgradeStep],
    *,
    text: str,
    jobs: Mapping[str, str] | None = None,
    loads: Mapping[str, str | None] | None = None,
    exit_code: int = 0,
) -> Outcome:
    result = {"stack": args.stack, "state": state, "archs": [step.to_dict() for step in steps]}
    result |= {"jobs": dict(jobs or {}), "loads": dict(loads or {})}
    return Outcome(text=text, result=result, exit_code=exit_code)


def find_parts(args: argparse.Namespace, site: Site) -> list[Part]:
    """The archs to upgrade.

    Raises:
        ConfigError: there is no such stack or arch, or users load the stack on none.
    """
    names = list(dict.fromkeys(args.archs or [arch.name for arch in site.archs]))
    parts = []
    for name in names:
        target = dataclasses.replace(make_target(site, name, args.stack), publish=False)
        loaded = target.store.pointers()
        if args.archs is None and not any(
            record.stack == target.stack.name and record.environment in loaded.values()
            for record in target.store.records(target.stack.module)
        ):
            continue
        facts = target.observe()
        request = target.request(facts)
        found = loaded.get(target.plan(request, facts).environment.pointer)
        before = EnvironmentId.parse(found) if found else None
        record = target.store.record(before) if before else None
        if args.archs or (record is not None and record.stack == target.stack.name):
            parts.append(Part(target=target, facts=facts, before=before))
    if not parts:
        raise ConfigError(
            f"users load the stack `{args.stack}` on no arch of site `{site.name}`",
            hint=f"`provision build --site {site.typed} --stack {args.stack}` builds it, "
            "or name the archs: `provision upgrade --arch ARCH`",
            kind="unpublished",
        )
    return parts


def lock_paths(parts: list[Part]) -> dict[Path, Part]:
    """The locks in the configuration that the archs use, each with an arch that uses it."""
    paths: dict[Path, Part] = {}
    for part in parts:
        name = part.target.stack.name
        place = shipped.place_of(f"requirements/{name}.in")
        assert place is not None  # its lock was read
        paths.setdefault(Path(place) / shipped.lock_name(name, part.python.minor), part)
    return paths


def make_steps(parts: list[Part]) -> list[UpgradeStep]:
    """The plan of each arch with the newer locks, and what it changes."""
    advisories, steps = read_advisories(), []
    for part in parts:
        request = part.target.request(part.facts)
        plan = part.target.plan(request, part.facts)
        steps.append(UpgradeStep(part=part, plan=plan, changes=_changes(part, request, plan, advisories)))
    return steps


def _changes(part: Part, request: Request, plan: Plan, advisories: Any) -> UpgradeChanges:
    wanted = planned_versions(request.pins, plan.identity)
    if part.before is None:
        return upgrade_changes({}, wanted, (plan.identity, plan.identity), advisories)
    store = part.target.store
    record = store.record(part.before)
    there = dict(installed_versions(Path(store.layout.prefix(part.before))))
    # What the installer brings is in no lock.
    brought = {"pip", "setuptools", "wheel"} - wanted.keys()
    installed = {name: version for name, version in there.items() if name not in brought}
    return upgrade_changes(installed, wanted, (record.identity if record else {}, plan.identity), advisories)


def say_steps(args: argparse.Namespace, steps: list[UpgradeStep]) -> None:
    """Show what changes on each arch; archs with the same changes share their lines."""
    groups: dict[tuple[str, ...], list[UpgradeStep]] = {}
    for step in steps:
        groups.setdefault(tuple(change_lines(step.changes)), []).append(step)
    say(f"upgrade of {args.stack}")
    for lines, same in groups.items():
        for step in same:
            before, after = step.part.before, short(str(step.plan.environment))
            now = f"{short(str(before))} -> {after}" if before else after
            what = f"{after}: users load it already" if not step.needed else f"{now}{', proved' * step.plan.done}"
            say(f"arch {step.part.arch}: {what}")
        if any(step.needed for step in same):
            for line in lines:
                say(line)
