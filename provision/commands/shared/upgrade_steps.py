"""What an upgrade does on each arch: who loads what there, the plan with the newer locks, and what it changes."""

from __future__ import annotations

import argparse
import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provision.commands.shared.target import Target, make_target
from provision.errors import ConfigError
from provision.machine.configuration import shipped
from provision.machine.files.tables import read_advisories
from provision.machine.probes.installed_packages import installed_versions
from provision.machine.terminal.console import say
from provision.model.facts import Facts, Interpreter
from provision.model.layout import EnvironmentId
from provision.model.plan import Plan
from provision.model.request import Request
from provision.planning.publication import planned_versions, short
from provision.planning.upgrade_changes import UpgradeChanges, change_lines, upgrade_changes
from provision.profile.site import Site


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
