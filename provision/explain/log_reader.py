"""Reads a log of any length once, in blocks of whole lines, and notes what its lines show.

Most lines of a log differ only in their numbers. With all digits replaced by `0`, each different line (a template) is looked at
once; the words of its text decide whether any pattern can match. Only such lines are decoded, and only patterns with their words
are tried. A message that a program breaks into several lines is read as one: a box of Open MPI, an error of CMake, Lmod or uv.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from provision.explain.conclude import Evidence
from provision.explain.known import Known, line_words
from provision.explain.lines import ANSI, LONG, read_line, read_text, split_parts
from provision.explain.notes import FOUND, OTHER, Notes

# What is remembered of templates, in bytes, and the looks after which a line without effect is not looked at again.
MOST_HELD, MOST_LOOKS = 4_000_000, 64
DIGITS = bytes.maketrans(b"123456789", b"000000000")
NUMBERS = re.compile(rb"0x[0-9a-f]+|0[0.,:]+")
# Parts of lines that are looked at for their form: exceptions, the places of tracebacks, borders.
FORMS = (
    b"error",
    b": f ",
    b"f0000 00:",
    b"traceback (most",
    b"exception",
    b'file "',
    b"file ~",
    b"file /",
    b"input in ",
    b"cell in",
    b"call stack:",
    b".py in ",
    b"<ipython",
    b"+ true",
)
EDGE = b"-" * 60
# What there is to do for a line: nothing, to look at it, to note that a training or a failure goes on.
DULL, LOOK, PROGRESS, FAILS = 0, 1, 2, 4
# What a network file system leaves in a file to which several nodes write; and characters that no text has.
HOLES = re.compile(rb"\0{16,}")
CONTROL_BYTES = bytes((*range(8), *range(14, 27), *range(28, 32)))
MOST_CONTROL = 0.05
# How a message begins that continues in the next lines, up to an empty one; and an error that ends with its causes or its hint.
HEADS = (
    "Lmod has detected the following error:",
    "CMake Error at ",
    "CMake Error: ",
    "CMake Warning",
    "Available Frameworks:",
    "Available Controllers:",
)
ERROR_HEAD, HINT, CAUSES = "error: ", "hint: ", ("cause: ", "Caused by: ", "caused by: ")
ENDS = (*HEADS, "-- ", "---", "Traceback")
JOINED = (*HEADS, ERROR_HEAD, '", line ')
MOST_JOINED = 24
# What the compilers of NVIDIA and others with EDG's front end print is broken to 80 columns, and indented by ten.
EDG, EDG_INDENT = re.compile(r'"[^"]{1,300}", line \d{1,7}: (?:catastrophic |internal )?error: '), " " * 10

# The nearest lines above one, as far as they are kept.
MOST_ABOVE = 80


@dataclass(slots=True, kw_only=True)
class _Kind:
    """What there is to do for lines of one kind; of many the first ones say everything."""

    todo: int
    family: _Kind | None = None
    """All lines in which patterns have the same words, if these lines are looked at for their form."""
    most: int = MOST_LOOKS
    looks: int = 0

    def tire(self, *, found: bool, fails: bool) -> None:
        """Note that a line was looked at; what shows a failure is not looked at any more after some, but counts."""
        self.looks += 1
        if self.looks >= (MOST_LOOKS if found else self.most):
            self.todo = FAILS if fails else self.todo & PROGRESS
        if found and self.family:
            self.family.tire(found=True, fails=fails)


class LogReader:
    """Reads a log and remembers what it shows; the memory does not depend on the length of the log."""

    def __init__(self, known: Known, *, hide: Callable[[str], str] = str, first: int = 1) -> None:
        self._known = known
        self._notes = Notes(known, hide=hide, above=self._above)
        self._kinds: dict[bytes, _Kind] = {}
        self._shapes: dict[bytes, _Kind] = {}
        self._families: dict[frozenset[str], _Kind] = {}
        self._held = 0
        self._number = first
        self._numbers: list[int] = []
        self._lines: list[bytes] = []
        self._before: list[tuple[int, bytes]] = []
        self._strange = self._bytes = 0

    @property
    def next_line(self) -> int:
        """The number of the line that is read next."""
        return self._number

    @property
    def failed_at(self) -> int:
        """The number of the last line that showed a failure; 0 if none did."""
        return self._notes.failed_at

    def feed(self, block: bytes) -> None:
        """Read the next lines, as UTF-8; the block ends at the end of a line, or within a very long one."""
        if b"\x1b" in block:
            block = ANSI.sub(b"", block)
        if b"\r" in block:
            block = block.replace(b"\r\n", b"\n")
        if b"\0" in block:
            block = HOLES.sub(b"", block)
        self._bytes += len(block)
        self._strange += _strange(block)
        lines = block.split(b"\n")
        if not lines[-1]:
            lines.pop()
        if not lines:
            return
        self._before = list(self._above(self._number + 1, MOST_ABOVE))
        numbers = list(range(self._number, self._number + len(lines)))
        self._number += len(lines) if block.endswith(b"\n") else len(lines) - 1
        self._notes.length = self._number - 1
        if b"\r" in block or max(map(len, lines)) > LONG:
            parts = [(number, part) for number, line in zip(numbers, lines, strict=True) for part in split_parts(line)]
            numbers, lines = [number for number, _ in parts], [part for _, part in parts]
            templates = b"\n".join(lines).lower().translate(DIGITS).split(b"\n") if lines else []
        else:
            templates = block.lower().translate(DIGITS).split(b"\n")[: len(lines)]
        self._numbers, self._lines = numbers, lines
        self._read(templates)

    def conclude(self) -> Evidence:
        """What the log showed."""
        above = self._above(self._number + 1, MOST_ABOVE)
        self._notes.close([(number, read_text(line)) for number, line in above if line.strip()])
        self._notes.is_text = self._strange <= MOST_CONTROL * self._bytes
        return self._notes

    def _classify(self, templates: list[bytes]) -> list[_Kind]:
        """What there is to do for each line."""
        fresh = set(templates).difference(self._kinds)
        self._held += sum(map(len, fresh))
        if self._held > MOST_HELD:
            self._kinds, self._shapes, self._families, fresh = {}, {}, {}, set(templates)
            self._held = sum(map(len, fresh))
        for template in fresh:
            shape = NUMBERS.sub(b"0", template)
            if shape not in self._shapes:
                self._shapes[shape] = self._kind(template)
            self._kinds[template] = self._shapes[shape]
        return list(map(self._kinds.__getitem__, templates))

    def _kind(self, template: bytes) -> _Kind:
        """What there is to do for the lines with this text, in small letters and with `0` for each digit.

        Lines in which patterns have the same words are of one family, whatever names are in them.
        """
        text = template.decode("utf-8", "replace")
        words = line_words(text)
        key = words & self._known.vocabulary
        family = self._families.get(key)
        if family is None:
            family = self._families[key] = _Kind(todo=self._todo(text, words))
        if family.todo in (LOOK, DULL) and (any(form in template for form in FORMS) or EDGE in template):
            return _Kind(todo=LOOK, family=family, most=MOST_LOOKS if b"0" in template else 1)
        return family

    def _todo(self, text: str, words: frozenset[str]) -> int:
        """What there is to do for the lines of a family, by the first one."""
        todo = DULL
        for number in self._known.candidates(words):
            if self._known.entry_of(number).level != "progress":
                todo |= LOOK
            elif self._known.pattern(number).search(text):
                todo |= PROGRESS
        return todo

    def _read(self, templates: list[bytes]) -> None:
        """Look at the lines whose words a pattern has, and at those that belong to a traceback or an unfinished report."""
        kinds, lines, numbers = self._classify(templates), self._lines, self._numbers
        done = 0  # the position behind the line that was looked at last
        for index in [index for index, kind in enumerate(kinds) if kind.todo]:
            kind, line = kinds[index], lines[index]
            if index < done or not kind.todo:
                continue
            if FAILS in (kind.todo, kind.family and kind.family.todo):
                self._notes.fail(numbers[index])
            elif kind.todo == PROGRESS:
                self._notes.progress(line)
            elif _strange(line) <= MOST_CONTROL * len(line) + 2:
                done = self._look(index, kind)

    def _look(self, index: int, kind: _Kind) -> int:
        """Look at a line, and at what continues it; returns the position behind the last line that was looked at."""
        number, raw, done = self._numbers[index], read_text(self._lines[index]), index + 1
        heads = (*HEADS, ERROR_HEAD, '"')
        joined = raw
        if any(head in raw for head in JOINED) and read_line(0, raw).text.lstrip().startswith(heads):
            joined, done = self._join(index, raw)
        effect = self._notes.look(number, joined)
        if kind.todo & PROGRESS and not effect:
            self._notes.progress(self._lines[index])
        if effect != OTHER:
            kind.tire(found=effect == FOUND, fails=self.failed_at == number)
        while self._notes.is_open and done < len(self._lines):
            text = read_text(self._lines[done])
            self._notes.look(self._numbers[done], text)
            done += 1
        return done

    def _above(self, number: int, most: int) -> Iterable[tuple[int, bytes]]:
        """The nearest lines above the one with this number, the nearest first."""
        index = bisect_left(self._numbers, number)
        nearest = slice(max(0, index - most), index)
        yield from zip(reversed(self._numbers[nearest]), reversed(self._lines[nearest]), strict=True)
        yield from self._before[: max(0, most - index)]

    def _join(self, index: int, raw: str) -> tuple[str, int]:
        """A message in one line, and the position behind its lines: those of its rank before the next empty one.

        The text of CMake may stand below an empty line. An error is taken with its causes, or with all lines up to its hint.
        """
        head = read_line(0, raw)
        start = head.text.lstrip()
        error, cmake, warning = (start.startswith(text) for text in (ERROR_HEAD, "CMake", "CMake Warning"))
        edg = EDG.match(start)
        parts, whole, done = [raw], [raw], index + 1
        for place, line in enumerate(self._lines[index + 1 : index + MOST_JOINED], index + 2):
            more = read_line(0, read_text(line))
            text = more.text.strip()
            if not text and (error or warning or (cmake and len(parts) == 1)):
                continue
            belongs = bool(text) and more.rank == head.rank and not text.startswith(ENDS)
            if error and belongs and not text.startswith(ERROR_HEAD):
                whole.append(text)
                if text.startswith(HINT):
                    return " ".join(whole), place
                if text.startswith(CAUSES) and len(whole) == len(parts) + 1:
                    parts, done = [*parts, text], place
                continue
            if edg:
                belongs = more.text.startswith(EDG_INDENT)
            elif cmake:
                belongs = belongs and (more.text.startswith(" ") or (not warning and place == done + 1))
            if error or not belongs:
                break
            parts.append(text)
            done = place
        return " ".join(parts), done


def _strange(text: bytes) -> int:
    """The number of characters that no text has."""
    return len(text) - len(text.translate(None, CONTROL_BYTES))
