"""An upgrade of a stack, and what differs: for users of one arch after it, between two environments, and since a build. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from provision.knowledge.advisories import Advisories, open_advisories
from provision.model.check import Check, observed
from provision.model.layout import EnvironmentId
from provision.model.lock import Lock
from provision.model.record import Record
from provision.model.stored import Stored
from provision.planning.publication import differences, in_short, planned_versions

MOST_NAMED = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeChanges(Stored):
    """What changes between what users load and what the newer lock gives. `versions` are phrases: `keras 3.14.0 to 3.15.1`."""

    versions: tuple[str, ...] = ()
    advisories_closed: tuple[str, ...] = ()
    """Advisories that are open now, and no more after it."""
    advisories_opened: tuple[str, ...] = ()
    patches_dropped: tuple[str, ...] = ()
    """Patches of Horovod that no longer fit."""
    patches_added: tuple[str, ...] = ()
    other: tuple[str, ...] = ()
    """What else of the identity differs: the compiler, the modules of the site."""


def upgrade_changes(
    installed: Mapping[str, str],
    wanted: Mapping[str, str],
    identities: tuple[Mapping[str, str], Mapping[str, str]],
    advisories: Advisories,
) -> UpgradeChanges:
    """Compare what is installed and was locked with what the newer lock wants; `identities` are those of both environments."""
    before, after = (
        {f"{one.advisory.id} ({one.package})" for one in open_advisories(packages.items(), advisories)}
        for packages in (installed, wanted)
    )
    first, second = identities
    old, new = (dict(part.partition(":")[::2] for part in one.get("patches", "").split()) for one in identities)
    changed = [f"{name} (changed)" for name in old if name in new and old[name] != new[name]]
    known = ("patches", "lock", "mpi lock")
    return UpgradeChanges(
        versions=tuple(differences(installed, wanted)),
        advisories_closed=tuple(sorted(before - after)),
        advisories_opened=tuple(sorted(after - before)),
        patches_dropped=tuple(name for name in old if name not in new),
        patches_added=(*(name for name in new if name not in old), *changed),
        other=tuple(
            name
            for name in dict.fromkeys((*first, *second))
            if name not in known and first.get(name) != second.get(name)
        ),
    )


def change_lines(changes: UpgradeChanges) -> list[str]:
    """The changes as lines for a person."""
    lines = [f"  {line}" for line in changes.versions] or ["  the same versions"]
    for label, names in (
        ("advisories closed", changes.advisories_closed),
        ("advisories opened", changes.advisories_opened),
        ("patches that no longer fit", changes.patches_dropped),
        ("patches that come", changes.patches_added),
        ("also differs", changes.other),
    ):
        if names:
            lines.append(f"  {label}: {in_short(names, MOST_NAMED)}")
    if not changes.patches_dropped and not changes.patches_added:
        lines.append("  patches of Horovod: the same")
    return lines


def newer_lock(record: Record, lock: Lock, installed: Mapping[str, str], stack: str) -> list[Check]:
    """Whether the lock of its stack differs from the one that it was built from."""
    if record.identity.get("lock") in (None, "", lock.sha256):
        return []
    wanted = planned_versions(lock.pins, record.identity)
    changed = differences({name: version for name, version in installed.items() if name in wanted}, wanted)
    return [
        observed(
            "",
            "note",
            f"the lock of `{stack}` changed after it was built: {in_short(changed) or 'the same versions, other files'}",
            name="lock",
            hint=f"`provision upgrade --dry-run {stack}` shows what a newer environment changes",
        )
    ]


def newer_advisories(record: Record, open_now: Mapping[str, str], stack: str) -> list[Check]:
    """The advisories that are open now and were not known then; `open_now` has the package of each."""
    new = [] if record.advisories is None else sorted(open_now.keys() - set(record.advisories))
    if not new:
        return []
    named = in_short([f"{name} ({open_now[name]})" for name in new])
    return [
        observed(
            "",
            "note",
            f"{len(new)} open that were not known when it was built: {named}",
            name="advisories",
            hint=f"`provision audit {record.environment}`; `provision upgrade --dry-run {stack}`",
        )
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordDifference(Stored):
    """One value that two environments do not share; None if one of them has no such value."""

    group: str
    """`package`, `identity`, `record`, `proof` or `machine`."""
    name: str
    before: str | None
    after: str | None


def record_diff(
    before: Record, after: Record, packages_before: Mapping[str, str], packages_after: Mapping[str, str]
) -> list[RecordDifference]:
    """Everything that differs, packages first; the packages are those that are installed."""
    sides: list[dict[str, Mapping[str, str | None]]] = [
        {
            "package": packages,
            "identity": record.identity,
            "record": {
                "site": record.site,
                "stack": record.stack,
                "wheel": record.wheel,
                "built": record.built,
                "by": record.user,
                "host": record.host,
                "job": record.job,
                "provision": record.provision,
                "forced": record.forced,
            },
            "proof": _of_proof(record),
            "machine": {trace.subject: trace.value for trace in record.traces},
        }
        for record, packages in ((before, packages_before), (after, packages_after))
    ]
    first, second = sides
    return [
        RecordDifference(group=group, name=name, before=first[group].get(name), after=second[group].get(name))
        for group in first
        for name in dict.fromkeys((*first[group], *second[group]))
        if first[group].get(name) != second[group].get(name)
    ]


def _of_proof(record: Record) -> dict[str, str]:
    figures = record.verdict.verdict.figures
    values = {
        "ranks": figures.ranks,
        "hosts": len(figures.hosts),
        "accuracy": figures.accuracy,
        "images/s": figures.images_per_second,
        "weights": figures.weights_sha256,
    }
    return {name: str(value) for name, value in values.items() if value is not None}


UpgradeState = Literal["building", "publishing", "published", "undoing", "undone"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchUpgrade(Stored):
    """The upgrade of one arch, named as in the profile; `before` is None if users loaded nothing."""

    arch: str
    before: EnvironmentId | None
    after: EnvironmentId


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgrade(Stored):
    """The upgrade of one stack on its archs.

    `locks` are the paths of its locks in the configuration. Their texts, new and old, are beside the file of the upgrade.
    """

    SCHEMA: ClassVar[int] = 1
    stack: str
    state: UpgradeState
    archs: tuple[ArchUpgrade, ...]
    locks: tuple[str, ...]
