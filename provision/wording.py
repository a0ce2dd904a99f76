"""Small words of messages: the nearest known name, and lists. Pure, and cheap to import: the command line starts with it."""

from __future__ import annotations

from collections.abc import Sequence

# How many minor versions away a version may be that was meant.
FARTHEST = 3


def nearest_name(word: str, known: Sequence[str]) -> str | None:
    """The known name that a misspelt word most likely means, or None."""
    import difflib

    if word in known:
        return word
    release = nearest_release(word, known)
    if release:
        return release
    beginning = [name for name in known if len(word) > 2 and name.startswith(word)]
    if len(beginning) == 1:
        return beginning[0]
    close = difflib.get_close_matches(word, beginning or known, n=1)
    return next(iter(close or beginning), None)


def nearest_release(word: str, known: Sequence[str]) -> str | None:
    """The known name with the nearest version, if the word is a known name with another version: `tensorflow-2.22`.

    Without a version, or with the next major version, it is the newest. None if more than the version differs, or if no known
    version is near.
    """
    wanted = _release(word)
    if wanted is None:
        return None
    name, version, kind = wanted
    parts = {known_name: _release(known_name) for known_name in known}
    names = {part[1]: known_name for known_name, part in parts.items() if part and (part[0], part[2]) == (name, kind)}
    names.pop((), None)
    same = [other for other in names if other[: len(version)] == version]
    if same:
        return names[max(same)]
    if names and version[0] == max(names)[0] + 1:
        return names[max(names)]
    if len(version) < 2:
        return None
    steps = {other: abs(other[1] - version[1]) for other in names if len(other) > 1 and other[0] == version[0]}
    near = [other for other in steps if steps[other] <= FARTHEST]
    return names[max(near, key=lambda other: (-steps[other], other))] if near else None


def _release(name: str) -> tuple[str, tuple[int, ...], str] | None:
    """The name, the version and the kind in `tensorflow-2.21.0-gpu`; None for other forms."""
    import re

    match = re.fullmatch(r"([A-Za-z]\w*)(?:-([0-9]{1,9}(?:\.[0-9]{1,9})*)(-[a-z].*)?)?", name, re.ASCII)
    return (match[1], tuple(map(int, match[2].split("."))) if match[2] else (), match[3] or "") if match else None


def nearest(word: str, known: Sequence[str]) -> str:
    """` (did you mean …?)` for a misspelt word, or nothing."""
    name = nearest_name(word, known)
    return f" (did you mean `{name}`?)" if name else ""


def add_arch(archs: Sequence[str]) -> str:
    """The hint of a verb that needs one of these archs."""
    return f"add {' or '.join(f'`--arch {arch}`' for arch in archs)}"


def count(number: int, noun: str, nouns: str | None = None) -> str:
    """`1 step`, `2 steps`; `nouns` is a plural without a plain s."""
    return f"{number} {noun if number == 1 else nouns or f'{noun}s'}"


def duration(seconds: float) -> str:
    """A span of time: `8 s`, `1 min 50 s`, `12 min`, `2 h 5 min`."""
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    if whole < 60:
        return f"{whole} s"
    if whole < 600:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(round(whole / 60), 60)
    if not hours:
        return f"{minutes} min"
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def about(seconds: float) -> str:
    """A span of time that is only estimated: `about 1 min 50 s`, in steps of 5 s up to a minute and of 10 s above it."""
    step = 5 if seconds < 60 else 10
    return f"about {duration(max(step, round(seconds / step) * step))}"


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """The rows as lines in which each column is as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
