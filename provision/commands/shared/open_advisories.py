"""The line about open advisories that `build` and `show` print."""

from __future__ import annotations

from collections.abc import Iterable

from provision.knowledge.advisories import open_advisories, software, summary
from provision.knowledge.frameworks import FRAMEWORKS
from provision.machine.files.tables import read_advisories


def advisories_line(packages: Iterable[tuple[str, str]]) -> str:
    """How many advisories are open in these packages, what users of Horovod must not do, and the framework without a record."""
    advisories, packages = read_advisories(), list(packages)
    read, here = {row.package for row in advisories.rows}, {software(name) for name, _ in packages}
    unread = [one.package for one in FRAMEWORKS.values() if one.package in here - read]
    line = summary(open_advisories(packages, advisories), advisories)
    return "; ".join((line, *(f"nobody has read those of {package}" for package in unread)))
