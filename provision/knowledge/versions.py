"""Versions as numbers, to compare and to sort: `2.9.3` comes before `2.10.1`."""

from __future__ import annotations

import re


def release(version: str) -> tuple[int, ...]:
    """The numbers of a version such as `2.15.1`."""
    return tuple(int(part) for part in re.findall(r"\d+", version))
