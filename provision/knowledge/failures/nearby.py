"""The lines next to one of a log, as far as they are kept."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import islice

from provision.knowledge.failures.line_parts import read_text
from provision.knowledge.failures.lines import Line, read_line


class Nearby:
    """The lines of the block that is being read, and the last ones of the block before it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._numbers: list[int] = []
        self._lines: list[bytes] = []
        self._before: list[tuple[int, str]] = []

    def move_on(self, numbers: list[int], lines: list[bytes]) -> None:
        """Keep the next block, and the last lines above it."""
        self._before = [*islice(self.above(numbers[0]), self._most)] if numbers else self._before
        self._numbers, self._lines = numbers, lines

    def above(self, number: int) -> Iterable[tuple[int, str]]:
        """The nearest lines above the one with this number, the nearest first."""
        index = bisect_left(self._numbers, number)
        nearest = slice(max(0, index - self._most), index)
        yield from zip(reversed(self._numbers[nearest]), map(read_text, reversed(self._lines[nearest])), strict=True)
        yield from self._before

    def below(self, line: Line) -> Iterable[str]:
        """The lines of its rank below a line, as far as they were read, without what stands before them."""
        index = bisect_left(self._numbers, line.number) + 1
        below = slice(index, index + self._most)
        others = map(read_line, self._numbers[below], map(read_text, self._lines[below]))
        yield from (other.text for other in others if other.rank == line.rank)
