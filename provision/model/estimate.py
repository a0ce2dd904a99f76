"""How long a build will take, from the seconds in the records of earlier builds. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

UNTIMED = ("publish",)
"""Steps of no record: it is written while they run, and they take no time worth a word."""


def expected_seconds(records: Iterable[Mapping[str, Any]], *, stack: str, arch: str) -> dict[str, float]:
    """The seconds that each step took when this stack was last built: for this arch, or else for another.

    A record lacks the steps that its run reused, so each step comes from the newest record that has it.
    """
    found: dict[str, float] = {}
    fitting = [record for record in records if record.get("stack") == stack]
    # The last one wins: other archs before this one, and older before newer.
    for record in sorted(fitting, key=lambda one: (_arch(one) == arch, str(one.get("built")))):
        seconds = record.get("seconds")
        if isinstance(seconds, Mapping):
            found |= {str(name): float(value) for name, value in seconds.items() if _is_seconds(value)}
    return found


def expected_total(steps: Collection[str], expected: Mapping[str, float]) -> float | None:
    """The seconds that these steps will take together; None while one of them has never been timed."""
    timed = [step for step in steps if step not in UNTIMED]
    if not expected or any(step not in expected for step in timed):
        return None
    return sum(expected[step] for step in timed)


def _arch(record: Mapping[str, Any]) -> str:
    return str(record.get("environment")).partition("/")[0]


def _is_seconds(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e6
