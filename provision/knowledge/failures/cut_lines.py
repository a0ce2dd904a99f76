"""Lines that were cut off, of which the whole ones are known to be harmless: the end that would excuse them is missing."""

from __future__ import annotations

# So many harmless lines are remembered, by their first characters; so much of a line must be left to know it again.
MOST, KEY, SHORTEST = 64, 40, 24


class HarmlessLines:
    """The beginnings of lines that were harmless."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def add(self, text: str) -> None:
        """Remember a harmless line."""
        if len(self._known) < MOST:
            self._known.setdefault(text[:KEY], text)

    def has_whole(self, text: str) -> bool:
        """Whether a line is the beginning of one of them, but for its last word, which may be cut or differ."""
        left = text.rstrip().rpartition(" ")[0]
        return len(left) >= SHORTEST and any(known.startswith(left) for known in self._known.values())
