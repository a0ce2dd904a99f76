"""Versions as numbers, to compare and to sort: `2.9.3` comes before `2.10.1`."""

from __future__ import annotations

import re
from collections.abc import Iterable


def ascending(versions: Iterable[str]) -> list[str]:
    """Versions such as `3.9` and `3.11`, the oldest first."""
    return sorted(versions, key=release)


def release(version: str) -> tuple[int, ...]:
    """The numbers of a version such as `2.15.1`."""
    # Digits of ASCII, and at most 15 of them: `int` refuses others, and numbers of more than 4300 digits.
    return tuple(int(part) for part in re.findall(r"[0-9]{1,15}", version))
