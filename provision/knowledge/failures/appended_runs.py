"""Files to which several runs of a program wrote, one after the other: the last one is the one that matters."""

from __future__ import annotations

import re
from collections.abc import Iterator

from provision.knowledge.failures.catalogue import WEIGHTS
from provision.knowledge.failures.findings import Explanation
from provision.knowledge.failures.line_parts import read_text
from provision.knowledge.failures.lines import read_line

# A run is known again by its first lines that are not empty, each of at least so many characters, and at most so many in all.
LINES, SHORTEST, LONGEST = 3, 8, 4000
# Lines that stand there more often belong to the steps of one run.
MOST = 64
# Lines of failures repeat within one run, as those of ranks do.
NEVER = (b"traceback", b"error", b"exception", b'file "', b"fail")
NUMBER = re.compile(rb"\d+")
# What a program says of a file that is missing, and a path that does not depend on the folder of the job.
MISSING = re.compile(
    r"\bNo such file|\bnot found\b|\bdoes not exist\b|\b[Cc]annot (?:open|find)\b|\bNo \S+ \w+ found\b"
)
ABSOLUTE = re.compile(r"(?:^|[\s'\"`=])/\w")


def decide(last: Explanation, whole: Explanation) -> Explanation:
    """What a file with several runs shows: the last one, unless it says less about a failure than the whole file.

    What looks like another run can be a rank that started late, or the next step of the job: how that died follows from the
    failure of the first one.
    """
    known, first = last.known, whole.known
    if not known or whole.verdict == "healthy":
        return whole
    if not first:
        return last
    weaker = known.hit.weight < min(first.hit.weight, WEIGHTS["error"])
    without = known.failure.goes_on and not first.failure.goes_on
    words = " ".join((known.hit.text, known.says, *known.hit.values.values()))
    missing = MISSING.search(words) and not ABSOLUTE.search(words)
    return whole if weaker or without or missing or known.failure.may_follow else last


class RunStart:
    """The first lines of a log, with any number for each number: if they stand there again, another run begins."""

    def __init__(self) -> None:
        self._head: re.Pattern[bytes] | None = None
        self._starts = -1

    @property
    def repeats(self) -> bool:
        """Whether the first lines stand there so often that they begin no runs."""
        return self._starts > MOST

    def split(self, block: bytes) -> Iterator[bytes]:
        """The parts of a block of which each but the first begins a run; the first is empty if the block begins with one."""
        begin = 0
        if self._starts < 0:
            self._head = _head(block)
        for found in self._head.finditer(block) if self._head else ():
            self._starts += 1
            if self.repeats:
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
    whole = len(shapes) == LINES and block[:end].endswith(b"\n")
    if not whole or any(len(line) < SHORTEST or any(word in line for word in NEVER) for line in shapes):
        return None
    if any(read_line(0, read_text(line)).rank for line in lines):
        return None
    return re.compile(b"(?m)^" + NUMBER.sub(rb"\\d+", re.escape(block[:end].lstrip())))
