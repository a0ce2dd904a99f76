"""Lines that were cut off, of which the whole ones are known to be harmless: the end that would excuse them is missing."""

from __future__ import annotations

# So many harmless lines are remembered, each with so many characters; so much of a line must be left to know it again.
MOST, LONGEST, SHORTEST = 64, 300, 24


class HarmlessLines:
    """The beginnings of lines that were harmless."""

    def __init__(self) -> None:
        self._known: dict[str, None] = {}

    def add(self, text: str) -> None:
        """Remember a harmless line."""
        if len(self._known) < MOST:
            self._known.setdefault(text[:LONGEST])

    def has_whole(self, text: str) -> bool:
        """Whether a line is the beginning of one of them; a name in quotation marks that was cut may be another one."""
        text = text.rstrip()
        left, _, last = text.rpartition(" ")
        beginning = left if last.count("'") == 1 and last.startswith("'") else text
        return len(beginning) >= SHORTEST and any(
            known.startswith(beginning) and len(text) < len(known) for known in self._known
        )
