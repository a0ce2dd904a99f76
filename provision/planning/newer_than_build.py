"""What is known now and was not when an environment was built: a newer lock of its stack, newer advisories. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from provision.model.check import Check, observed
from provision.model.lock import Lock
from provision.model.record import Record
from provision.planning.publication import differences, in_short, planned_versions


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
