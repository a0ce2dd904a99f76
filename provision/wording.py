"""Small words of messages: the nearest known name, and lists. Pure, and cheap to import: the command line starts with it."""

from __future__ import annotations

from collections.abc import Sequence


def nearest_name(word: str, known: Sequence[str]) -> str | None:
    """The known name that a misspelt word most likely means, or None."""
    import difflib

    if word in known:
        return word
    beginning = [name for name in known if len(word) > 2 and name.startswith(word)]
    if len(beginning) == 1:
        return beginning[0]
    close = difflib.get_close_matches(word, beginning or known, n=1)
    return next(iter(close or beginning), None)


def nearest(word: str, known: Sequence[str]) -> str:
    """` (did you mean …?)` for a misspelt word, or nothing."""
    name = nearest_name(word, known)
    return f" (did you mean `{name}`?)" if name else ""


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
