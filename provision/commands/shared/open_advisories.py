"""The line about open advisories that `build` and `show` print."""

from __future__ import annotations

from collections.abc import Iterable

from provision.knowledge.advisories import open_advisories, summary
from provision.machine.files.tables import read_advisories


def advisories_line(packages: Iterable[tuple[str, str]]) -> str:
    """How many advisories are open in these packages, and what users must not do."""
    advisories = read_advisories()
    return summary(open_advisories(packages, advisories), advisories)
