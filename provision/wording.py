"""Small words of messages: the nearest known name, and lists. Pure, and cheap to import: the command line starts with it."""

from __future__ import annotations

from collections.abc import Sequence


def nearest(word: str, known: Sequence[str]) -> str:
    """` (did you mean …?)` for a misspelt word, or nothing."""
    import difflib

    close = difflib.get_close_matches(word, known, n=1)
    return f" (did you mean `{close[0]}`?)" if close else ""
