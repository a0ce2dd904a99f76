"""When environments were loaded, from a log that the site's module system writes. Pure.

A line counts if it has `environment=ARCH/NAME/VERSION-FINGERPRINT` and `time=SECONDS`, the seconds since 1970; whatever else the
line contains. Other lines are passed over: the log may be the site's own, with all modules.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

LOADED = re.compile(r"(?<!\S)environment=([^\s/]{1,100}/[^\s/]{1,100}/[^\s/]{1,100})(?!\S)")
AT = re.compile(r"(?<!\S)time=(\d{1,12})(?:\.\d*)?(?!\S)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The last load of each environment, and the time of the first line, before which nothing is known. Seconds since 1970."""

    since: int
    last: Mapping[str, int] = field(default_factory=dict)

    def unloaded_s(self, environment: str, now: float) -> float:
        """For how long an environment was not loaded, at least."""
        return max(0.0, now - self.last.get(environment, self.since))


def read_usage(text: str) -> Usage | None:
    """The loads that a log lists; None if no line is about an environment."""
    last: dict[str, int] = {}
    since: int | None = None
    for line in text.splitlines():
        loaded, at = LOADED.search(line), AT.search(line)
        if loaded and at:
            time = int(at[1])
            since = time if since is None else min(since, time)
            last[loaded[1]] = max(time, last.get(loaded[1], 0))
    return None if since is None else Usage(since=since, last=last)
