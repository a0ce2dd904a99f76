"""`explain`: what a log shows. Of several runs that were appended to one file, the last one leads."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from provision.explain.conclude import Explanation, conclude
from provision.explain.known import LEVELS, Known
from provision.explain.lines import read_line, read_text
from provision.explain.log_reader import LogReader

# A run is known again by its first lines that are not empty, each of at least so many characters, and at most so many in all.
LINES, SHORTEST, LONGEST = 3, 8, 4000
# Lines that stand there more often belong to the steps of one run.
MOST = 64
# Lines of failures repeat within one run, as those of ranks do.
NEVER = re.compile(rb'traceback|error|exception|file "|fail')
NUMBER = re.compile(rb"\d+")


def explain(
    blocks: Iterable[bytes], known: Known, *, failed: bool = False, hide: Callable[[str], str] = str
) -> Explanation:
    """What a log shows, in blocks of whole lines; `failed` if it is known that the program failed."""
    reader, start = LogReader(known, hide=hide), _RunStart()
    earlier: Explanation | None = None
    begins = 1
    for block in blocks:
        for index, part in enumerate(start.split(block)):
            if index and reader.failed_at:
                explanation = replace(conclude(reader.conclude()), begins=begins)
                earlier = _later(earlier, explanation)
                begins = reader.next_line
                reader = LogReader(known, hide=hide, first=begins)
            if part:
                reader.feed(part)
    explanation = replace(conclude(reader.conclude(), failed=failed), begins=begins)
    return _later(earlier, explanation)


def _later(earlier: Explanation | None, last: Explanation) -> Explanation:
    """What a file with several runs shows: the last one, unless it ends without a word of failure or says less about one.

    What looks like another run can be a rank that started late, or the next step of the job: how that died follows from the
    failure of the first one.
    """
    if not earlier or earlier.verdict == "healthy":
        return last
    if last.verdict == "healthy":
        return last if last.ended or last.trained else replace(earlier, length=last.length)
    if not earlier.known:
        return last
    least = min(earlier.known.strength, LEVELS["complaint"])
    return last if last.known and last.known.strength >= least else replace(earlier, length=last.length)


class _RunStart:
    """The first lines of a log, with any number for each number: if they stand there again, another run begins."""

    def __init__(self) -> None:
        self._head: re.Pattern[bytes] | None = None
        self._starts = -1

    def split(self, block: bytes) -> Iterator[bytes]:
        """The parts of a block of which each but the first begins a run; the first is empty if the block begins with one."""
        begin = 0
        if self._starts < 0:
            self._head = _head(block)
        for found in self._head.finditer(block) if self._head else ():
            self._starts += 1
            if self._starts > MOST:
                self._head = None
                break
            if self._starts:
                yield block[begin : found.start()]
                begin = found.start()
        self._starts = max(self._starts, 0)
        yield block[begin:]


def _head(block: bytes) -> re.Pattern[bytes] | None:
    """The pattern of the first lines, if they can be known again; none if they say which rank prints them."""
    lines: list[bytes] = []
    end = 0
    for line in block[:LONGEST].splitlines(keepends=True):
        end += len(line)
        if line.strip():
            lines.append(line.strip())
        if len(lines) == LINES:
            break
    shapes = {NUMBER.sub(b"0", line.lower()) for line in lines}
    if len(shapes) < LINES or not block[:end].endswith(b"\n"):
        return None
    if any(len(shape) < SHORTEST or NEVER.search(shape) for shape in shapes):
        return None
    if any(read_line(0, read_text(line)).rank for line in lines):
        return None
    return re.compile(b"(?m)^" + NUMBER.sub(rb"\\d+", re.escape(block[:end].lstrip())))
