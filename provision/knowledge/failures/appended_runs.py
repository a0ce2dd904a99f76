"""Files to which several runs of a program wrote, one after the other: the last one is the one that matters."""

from __future__ import annotations

from itertools import islice

from provision.knowledge.failures.catalogue import WEIGHTS
from provision.knowledge.failures.findings import Explanation
from provision.knowledge.failures.line_parts import read_text
from provision.knowledge.failures.lines import read_line

# A run is known again by its first lines, each of at least so many characters.
LINES, SHORTEST = 3, 8
# Lines of failures repeat within one run, as those of ranks do.
NEVER = (b"traceback", b"error", b"exception", b'file "', b"fail")


def decide(last: Explanation, earlier: Explanation) -> Explanation:
    """What a file with two runs shows: the last one, unless it says less about a failure.

    What looks like a second run can be a rank that started late: how that died follows from the failure of the first one.
    """
    if last.known:
        first = earlier.known
        weaker = first and last.known.hit.weight < min(first.hit.weight, WEIGHTS["error"])
        without = first and last.known.failure.goes_on and not first.failure.goes_on
        return earlier if weaker or without else last
    return last if last.verdict == "unknown" and earlier.verdict == "healthy" else earlier


class RunStart:
    """The first lines of a log, with `0` for each digit: if they stand there again, another run begins."""

    def __init__(self) -> None:
        self._head: tuple[bytes, ...] | None = None

    def look_at(self, lines: list[bytes], templates: list[bytes]) -> None:
        """Take the first lines, if they can be known again; not those that say which rank prints them."""
        if self._head is not None:
            return
        first = [index for index, template in islice(enumerate(templates), 50) if template.strip()][:LINES]
        head = tuple(templates[index] for index in first)
        if (
            len(set(head)) < LINES
            or any(len(text) < SHORTEST or any(word in text for word in NEVER) for text in head)
            or any(read_line(0, read_text(lines[index])).rank for index in first)
        ):
            head = ()
        self._head = head

    @property
    def first(self) -> bytes | None:
        """The line with which a run may begin."""
        return self._head[0] if self._head else None

    def stands_at(self, index: int, templates: list[bytes]) -> bool:
        """Whether all first lines stand here, with nothing but empty lines between them."""
        below = (text for text in islice(templates, index, index + 4 * LINES) if text.strip())
        return tuple(islice(below, LINES)) == self._head
