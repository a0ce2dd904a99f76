"""How long a build will take, from the seconds in the records of earlier builds. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from provision.model.record import Record
from provision.profile.choices import BackendName

UNTIMED = ("publish",)
"""Steps that no record contains, because it is written while they run; their time is negligible."""


def backend_of(identity: object) -> BackendName:
    """What built an environment with this identity: only that of Spack has Spack's commit."""
    return "spack" if isinstance(identity, Mapping) and "spack" in identity else "venv"


def expected_seconds(records: Iterable[Record], *, stack: str, arch: str, backend: BackendName) -> dict[str, float]:
    """The seconds that each step took when this backend last built this stack: for this arch if possible, or for another.

    A record lacks the steps that its run reused, so each step comes from the newest record that has it.
    """
    expected: dict[str, float] = {}
    same_stack = [record for record in records if record.stack == stack and backend_of(record.identity) == backend]
    # Later records replace earlier ones: other archs come before this one, and older records before newer ones.
    for record in sorted(same_stack, key=lambda one: (one.environment.startswith(f"{arch}/"), one.built)):
        expected |= record.seconds
    return expected


def expected_total(steps: Collection[str], expected: Mapping[str, float]) -> float | None:
    """The seconds that these steps will take together; None while one of them has never been timed."""
    timed = [step for step in steps if step not in UNTIMED]
    if not expected or any(step not in expected for step in timed):
        return None
    return sum(expected[step] for step in timed)
