"""Files to which several runs of a program wrote, one after the other: the last one is the one that matters."""

from __future__ import annotations

from collections.abc import Iterator

from provision.knowledge.failures.catalogue import WEIGHTS
from provision.knowledge.failures.findings import Explanation
from provision.knowledge.failures.line_parts import read_text
from provision.knowledge.failures.lines import read_line

# A run is known again by its first lines that are not empty, each of at least so many characters, and at most so many in all.
LINES, SHORTEST, LONGEST = 3, 8, 4000
# Lines of failures repeat within one run, as those of ranks do.
NEVER = (b"traceback", b"error", b"exception", b'file "', b"fail")
DIGITS = bytes.maketrans(b"123456789", b"000000000")


def decide(last: Explanation, whole: Explanation) -> Explanation:
    """What a file with several runs shows: the last one, unless it says less about a failure than the whole file.

    What looks like another run can be a rank that started late: how that died follows from the failure of the first one.
    """
    known, first = last.known, whole.known
    if not known or whole.verdict == "healthy":
        return whole
    if not first:
        return last
    weaker = known.hit.weight < min(first.hit.weight, WEIGHTS["error"])
    without = known.failure.goes_on and not first.failure.goes_on
    return whole if weaker or without else last


class RunStart:
    """The first lines of a log, with `0` for each digit: if they stand there again, another run begins."""

    def __init__(self) -> None:
        self._head: bytes | None = None

    def split(self, block: bytes) -> Iterator[bytes]:
        """The parts of a block of which each but the first begins a run; the first is empty if the block begins with one."""
        template = block.lower().translate(DIGITS)
        at = begin = 0
        if self._head is None:
            self._head = _head(block, template)
            at = len(self._head)
        while self._head and (found := template.find(self._head, at)) >= 0:
            at = found + len(self._head)
            if not found or template[found - 1 : found] == b"\n":
                yield block[begin:found]
                begin = found
        yield block[begin:]


def _head(block: bytes, template: bytes) -> bytes:
    """The first lines, if they can be known again; nothing if they say which rank prints them."""
    lines: list[bytes] = []
    end = 0
    for line in template[:LONGEST].splitlines(keepends=True):
        end += len(line)
        if line.strip():
            lines.append(line.strip())
        if len(lines) == LINES:
            break
    whole = len(set(lines)) == LINES and template[:end].endswith(b"\n")
    if not whole or any(len(line) < SHORTEST or any(word in line for word in NEVER) for line in lines):
        return b""
    ranks = (read_line(0, read_text(line)).rank for line in block[:end].splitlines())
    return b"" if any(ranks) else template[:end].lstrip()
