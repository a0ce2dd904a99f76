"""`provision upgrade STACK`: newer packages on all archs where users load it: built beside, proved, published on all or none."""

from __future__ import annotations

import contextlib
import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from provision.commands.build import plan_and_build
from provision.commands.fetch import fetch_missing
from provision.commands.shared.after_publish import after_publish
from provision.commands.shared.environments import read_store
from provision.commands.shared.hints import complete_error
from provision.commands.shared.order import Order
from provision.commands.shared.outcome import Args, Outcome
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
from provision.planning.preflight import network_faults
from provision.planning.publication import changes, planned_versions, short
from provision.planning.upgrade_changes import ArchUpgrade, Upgrade, UpgradeChanges, change_lines, upgrade_changes
from provision.profile.site import Site

# Of the evidence of each arch that failed.
MOST_LINES = 4
NOTHING = "nothing to do: users load what the newest locks give"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchStep:
    """What the upgrade does on one arch: what users load there before, and the plan, at first with the locks of now."""

    target: Target
    facts: Facts
    before: EnvironmentId | None
    plan: Plan
    changes: UpgradeChanges = field(default_factory=UpgradeChanges)

    @property
    def arch(self) -> str:
        """The name of the arch in the profile."""
        return self.target.arch.name

    @property
    def needed(self) -> bool:
        """Whether users do not load yet what the newer lock gives."""
        return self.before != self.plan.environment

    def to_dict(self) -> dict[str, Any]:
        """This step as plain JSON values."""
        return {
            "arch": self.arch,
            "before": str(self.before) if self.before else None,
            "after": str(self.plan.environment),
            "proved": self.plan.done,
            "changes": self.changes.to_dict(),
        }


def run(args: Args) -> Outcome:
    """Compile newer locks, build beside what users load, and publish all archs or none."""
    _refuse(args)
    site = shipped.load_site(args.site)
    refuse_submit(args, site)
    upgrades = Upgrades(read_store(site), args.stack)
    with contextlib.nullcontext() if args.dry_run else upgrades.held():
        left = None if args.dry_run else upgrades.read()
        if args.undo:
            return _undo(args, site, upgrades, left)
        if left is not None and left.state == "undoing":
            say("an upgrade was being taken back: finishing that first")
            upgrades.undo(left)
        if left is not None and left.state == "publishing":
            say("an upgrade was being published: finishing that first")
            return _switched(args, "published", site, upgrades.store, upgrades.publish(left))
        steps = find_steps(args, site)
        locks = lock_paths(steps)
        kept = {}
        if left is not None and left.state == "building" and not (args.recompile or args.locks):
            kept = upgrades.kept(list(locks))
        if kept:
            say("using the newer locks of the upgrade that did not end; `--recompile` compiles them again")
        with newer_locks(args.stack, locks, args.locks, kept) as folder:
            return _upgrade(args, site, upgrades, [with_newer_lock(step) for step in steps], folder)


def _refuse(args: Args) -> None:
    if args.undo:
        why = "`--undo` only changes what users load"
        refuse_unused(args, why, "--arch", "--locks", "--recompile", "--submit", "--dry-run")
    if not args.submit:
        refuse_unused(args, "there is no job", "--no-wait", "--account")
    if args.locks:
        refuse_unused(args, "`--locks` names the locks", "--recompile")


def _upgrade(args: Args, site: Site, upgrades: Upgrades, steps: list[ArchStep], folder: Path) -> Outcome:
    """Build what is missing, and publish when every arch is proved."""
    say_steps(args, steps)
    needed = [step for step in steps if step.needed]
    if not needed:
        return _outcome(args, "nothing", steps, text=NOTHING)
    if args.dry_run:
        again = [word for name in args.archs or () for word in ("--arch", name)]
        again += ["--locks", args.locks] if args.locks else []
        command = shlex.join(["provision", "upgrade", args.stack, "--site", site.typed, *again])
        text = f"{len(needed)} of {len(steps)} archs would change; `{command}` builds and publishes it"
        return _outcome(args, "planned", steps, text=text)
    todo = [step.arch for step in needed if not step.plan.done]
    if len(todo) > 1 and site.scheduler.name != "none" and not args.submit:
        raise ConfigError(
            f"{len(todo)} archs cannot be built on this machine at once: {', '.join(todo)}",
            hint="add `--submit`: each arch is built in a job of its own",
        )
    paths = list(lock_paths(needed))
    refuse_unwritable(paths, args.stack)
    archs = [ArchUpgrade(arch=step.arch, before=step.before, after=step.plan.environment) for step in needed]
    upgrade = Upgrade(stack=args.stack, state="building", archs=tuple(archs), locks=tuple(map(str, paths)))
    upgrade = upgrades.begin(upgrade, folder)
    with use_locks(str(upgrades.newer)):  # jobs see this folder, and not the temporary one
        _fetch(needed)
        errors, jobs = _build(args, todo)
    if jobs:
        text = "\n".join(f"{arch}  submitted, job {number}" for arch, number in jobs.items())
        say("the same command without `--submit` publishes when all jobs have ended")
        return _outcome(args, "submitted", steps, text=text, jobs=jobs, exit_code=EXIT_JOB_LEFT)
    proved = [step for step in needed if step.target.store.record(step.plan.environment) is not None]
    if len(proved) < len(needed):
        _refuse_unproved(args, needed, proved, errors)
    return _switched(args, "published", site, upgrades.store, upgrades.publish(upgrade), steps)


def _fetch(steps: list[ArchStep]) -> None:
    """Download the newer packages, if the nodes that build have no network."""
    for step in steps:
        request = step.target.request(step.facts)
        if network_faults(request, step.target.plan(request, step.facts)):
            fetch_missing(step.target.store, request)


def _build(args: Args, archs: list[str]) -> tuple[dict[str, ProvisionError], dict[str, str]]:
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
    args: Args, steps: list[ArchStep], proved: list[ArchStep], errors: Mapping[str, ProvisionError]
) -> None:
    """Raise: nothing is published, because not all archs are proved."""
    lost = [step.arch for step in steps if step not in proved]
    evidence = []
    for arch in lost:
        error = errors.get(arch)
        evidence.append(f"{arch}: {error.message if error else 'it is not proved'}")
        evidence += [f"  {line}" for line in (error.evidence[:MOST_LINES] if error else ())]
    evidence += [f"{step.arch}: proved, not published: {step.plan.environment}" for step in proved]
    first = errors.get(lost[0])
    raise StoreError(
        f"the upgrade of `{args.stack}` failed on {', '.join(f'`{arch}`' for arch in lost)}, so nothing was published",
        evidence=evidence,
        hint="remove the cause, then run the same command again: it keeps what is proved; or change the input of the lock. "
        "`provision prune` removes what is not published",
        kind="unproved",
        log=first.log if first else None,
    )


def _undo(args: Args, site: Site, upgrades: Upgrades, last: Upgrade | None) -> Outcome:
    """Take the last upgrade back."""
    if last is None or last.state in ("building", "undone"):
        raise ConfigError(
            f"there is no upgrade of `{args.stack}` to take back",
            evidence=["the last one was taken back" if last and last.state == "undone" else "none was published"],
            hint="`provision rollback` goes back to the generation before, on one arch",
            kind="no-generation",
        )
    return _switched(args, "undone", site, upgrades.store, upgrades.undo(last))


def _switched(
    args: Args, state: str, site: Site, store: Store, done: list[Switched], steps: Sequence[ArchStep] = ()
) -> Outcome:
    """Run the hook of the site for each arch, and describe what changed there and what users load now."""
    lines = []
    for one in done:
        if one.change is not None:
            what = changes(one.change.before, one.change.after) or ["no module changes"]
            lines += [f"arch {one.arch.arch}: {line}" for line in what]
            after_publish(site, store, "upgrade", one.arch.after.arch, str(one.arch.after))
        elif one.note:
            lines.append(f"arch {one.arch.arch}: {one.note}")
    lines = lines or ["no module changes"]
    if state == "published":
        lines.append(f"back on all archs: `provision upgrade {args.stack} --undo --site {site.typed}`")
    pointers = store.pointers()
    loads = {one.arch.arch: pointers.get(one.arch.after.pointer) for one in done}
    return _outcome(args, state, steps, text="\n".join(lines), loads=loads)


def _outcome(
    args: Args,
    state: str,
    steps: Sequence[ArchStep],
    *,
    text: str,
    jobs: Mapping[str, str] | None = None,
    loads: Mapping[str, str | None] | None = None,
    exit_code: int = 0,
) -> Outcome:
    result = {"stack": args.stack, "state": state, "archs": [step.to_dict() for step in steps]}
    result |= {"jobs": dict(jobs or {}), "loads": dict(loads or {})}
    return Outcome(text=text, result=result, exit_code=exit_code)


def find_steps(args: Args, site: Site) -> list[ArchStep]:
    """The archs to upgrade, each with the plan that the locks of now give.

    Raises:
        ConfigError: there is no such stack or arch, or users load the stack on none.
    """
    steps = []
    for name in dict.fromkeys(args.archs or [arch.name for arch in site.archs]):
        target = dataclasses.replace(make_target(site, name, args.stack), publish=False)
        loaded = target.store.pointers()
        if args.archs is None and not any(
            record.stack == target.stack.name and record.environment in loaded.values()
            for record in target.store.records(target.stack.module)
        ):
            continue
        facts = target.observe()
        plan = target.plan(target.request(facts), facts)
        found = loaded.get(plan.environment.pointer)
        before = EnvironmentId.parse(found) if found else None
        record = target.store.record(before) if before else None
        if args.archs or (record is not None and record.stack == target.stack.name):
            steps.append(ArchStep(target=target, facts=facts, before=before, plan=plan))
    if not steps:
        raise ConfigError(
            f"users load the stack `{args.stack}` on no arch of site `{site.name}`",
            hint=f"`provision build --site {site.typed} --stack {args.stack}` builds it, "
            "or name the archs: `provision upgrade --arch ARCH`",
            kind="unpublished",
        )
    return steps


def lock_paths(steps: list[ArchStep]) -> dict[Path, tuple[str, Interpreter]]:
    """The locks in the configuration that the archs use, each with its stack and a Python for which it is."""
    paths: dict[Path, tuple[str, Interpreter]] = {}
    for step in steps:
        name, python = step.target.stack.name, step.facts.python
        place = shipped.place_of(f"requirements/{name}.in")
        assert place is not None and python is not None  # its lock was read
        paths.setdefault(Path(place) / shipped.lock_name(name, python.minor), (name, python))
    return paths


def with_newer_lock(step: ArchStep) -> ArchStep:
    """The step with the plan of the newer lock, and what that changes."""
    target, before, advisories = step.target, step.before, read_advisories()
    request = target.request(step.facts)
    plan = target.plan(request, step.facts)
    wanted = planned_versions(request.pins, plan.identity)
    installed: Mapping[str, str] = {}
    identity: Mapping[str, str] = plan.identity
    if before is not None:
        record = target.store.record(before)
        identity = record.identity if record else {}
        # What the installer brings is in no lock.
        brought = {"pip", "setuptools", "wheel"} - wanted.keys()
        there = installed_versions(Path(target.store.layout.prefix(before)))
        installed = {name: version for name, version in there if name not in brought}
    found = upgrade_changes(installed, wanted, (identity, plan.identity), advisories)
    return dataclasses.replace(step, plan=plan, changes=found)


def say_steps(args: Args, steps: list[ArchStep]) -> None:
    """Show what changes on each arch; archs with the same changes share their lines."""
    groups: dict[tuple[str, ...], list[ArchStep]] = {}
    for step in steps:
        groups.setdefault(tuple(change_lines(step.changes)), []).append(step)
    say(f"upgrade of {args.stack}")
    for lines, same in groups.items():
        for step in same:
            before, after = step.before, short(str(step.plan.environment))
            now = f"{short(str(before))} -> {after}" if before else after
            what = f"{after}: users load it already" if not step.needed else f"{now}{', proved' * step.plan.done}"
            say(f"arch {step.arch}: {what}")
        if any(step.needed for step in same):
            for line in lines:
                say(line)
