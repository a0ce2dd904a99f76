"""The lines of a log that most likely show what failed, when nothing names it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class _Likely:
    """One line that looks like an error."""

    number: int
    text: str
    strength: int
    """How much it looks like the error that ended the program, as the forms of reports say."""


class LikelyLines:
    """Keeps the first and the last of the lines that look like errors, however many there are."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._first: dict[str, _Likely] = {}
        self._last: deque[_Likely] = deque(maxlen=most)

    def __bool__(self) -> bool:
        return bool(self._first)

    @property
    def strongest(self) -> int:
        """The strength of the strongest line."""
        return max((line.strength for line in self._first.values()), default=0)

    def add(self, number: int, text: str, strength: int) -> None:
        """Note a line; the same text is kept once."""
        line = _Likely(number, text, strength)
        if text in self._first:
            return
        if len(self._first) < self._most * self._most:
            self._first[text] = line
        elif all(line.text != known.text for known in self._last):
            self._last.append(line)

    def forget(self, is_excused: Callable[[int, str], bool]) -> None:
        """Forget the lines of which this is true, by number and text: a later line excuses them."""
        self._first = {text: line for text, line in self._first.items() if not is_excused(line.number, text)}
        self._last = deque((line for line in self._last if not is_excused(line.number, line.text)), maxlen=self._most)

    def choose(self, most: int) -> list[tuple[int, str]]:
        """So many lines in their order: the strongest, of these the first, and always the last line of all."""
        lines = [*self._first.values(), *self._last]
        chosen = sorted(lines, key=lambda line: (-line.strength, line.number))[:most]
        if lines and len(chosen) == most and lines[-1] not in chosen:
            chosen[-1] = lines[-1]
        return [(line.number, line.text) for line in sorted(chosen, key=lambda line: line.number)]
