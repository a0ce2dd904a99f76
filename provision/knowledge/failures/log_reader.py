"""Reads a log of any length once, in blocks of whole lines, and concludes whether it shows a failure, and which.

Most lines of a log differ only in their numbers. With all digits replaced by `0`, each different line is looked at once; the
words of its text decide whether any pattern can match. Only such lines are decoded, and only patterns with their words are tried.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from itertools import islice

from provision.knowledge.failures import health
from provision.knowledge.failures.boxes import MOST_LINES as MOST_NEAR
from provision.knowledge.failures.boxes import BoxReader
from provision.knowledge.failures.catalogue import WEIGHTS, Alternative, Catalogue
from provision.knowledge.failures.conclusion import conclude
from provision.knowledge.failures.crash_frames import crash_place
from provision.knowledge.failures.cut_lines import HarmlessLines
from provision.knowledge.failures.evidence import Evidence
from provision.knowledge.failures.findings import Explanation, Hit
from provision.knowledge.failures.forms import COMPLAINS, ENDS, ERRS, FOLLOWS
from provision.knowledge.failures.line_kinds import CLONES, EDGE, LOOK, PROGRESS, STRUCTURE, line_kind
from provision.knowledge.failures.line_parts import MOST_OF_A_LOG_LINE, read_text, split_parts
from provision.knowledge.failures.lines import (
    ANSI,
    ERROR,
    INFO,
    STATUS,
    WARNING,
    Line,
    excuses_above,
    excuses_below,
    is_code,
    is_excused,
    is_in_warning,
    level,
    read_line,
)
from provision.knowledge.failures.lsf_reports import JOB_ENDED, LsfReports
from provision.knowledge.failures.nearby import Nearby
from provision.knowledge.failures.paragraphs import MOST_LINES, begins_paragraph, join_paragraph
from provision.knowledge.failures.probes import ProbeReader
from provision.knowledge.failures.report_forms import follows
from provision.knowledge.failures.singletons import LoneRanks
from provision.knowledge.failures.tracebacks import Traceback
from provision.knowledge.failures.words import line_words

# What is remembered of lines that were looked at: bytes, and looks after which a line without effect is not looked at again.
MOST_HELD, MOST_LOOKS = 4_000_000, 64
DIGITS = bytes.maketrans(b"123456789", b"000000000")
# How GoogleTest announces a test, and says that it has passed.
TEST_BEGINS, TEST_PASSED = "[ RUN      ]", "[       OK ]"
# The name of the stream in what Open MPI puts before the lines of a rank.
STREAM = re.compile(r"<std\w+>:?|:$")
# A traceback that begins at most so many lines below a harmless record, or below the end of its first traceback, belongs to it.
DETAILS = 4
# How a line break is written in the `repr` of a text.
ESCAPED = "\\n"
# What `set -x` prints of `|| true`: the script did without the command above.
GUARDED = re.compile(r"\++ (?:true|:)$")
# The entry for ranks that do not know each other.
ALONE = "mpi-singletons"
# How many characters of a line may be control characters, before it is not text.
MOST_CONTROL = 0.05
CONTROL_BYTES = bytes((*range(8), *range(14, 27), *range(28, 32)))
# What a network file system leaves in a file to which several nodes write, or that was cut while a program wrote to it.
HOLES = re.compile(rb"\0{16,}")
CONTROL = re.compile("[\\x00-\\x07\\x0e-\\x1a\\x1c-\\x1f\\ufffd]")


class LogReader:
    """Reads a log and remembers what it shows; the memory does not depend on the length of the log."""

    def __init__(
        self, catalogue: Catalogue, *, most: int = 8, hide: Callable[[str], str] = str, first: int = 1
    ) -> None:
        self._catalogue = catalogue
        self._fresh = partial(Evidence, most=most, hide=hide)
        self._evidence = self._fresh()
        self._ended: Evidence | None = None  # of the last job that has ended, if the file can hold another one
        self._jobs = LsfReports()
        self._known_words = STRUCTURE | catalogue.index.keys()
        self._kinds: dict[bytes, int] = {}
        self._held = 0
        self._looks: dict[bytes, int] = {}
        self._number = first
        self._test = 0  # the line with which the last test began
        self._nearby = Nearby(MOST_NEAR)
        self._lone_ranks = LoneRanks()
        self._alone = next((failure for failure in catalogue.failures if failure.id == ALONE), None)
        self._record = -DETAILS, ""  # the last harmless record with a traceback, or the end of that, and the rank
        self._excused_to = 0  # the last line that one above it says to ignore
        self._probes = ProbeReader()
        self._harmless = HarmlessLines()
        self._boxes = BoxReader()
        self._bytes = self._strange = 0

    def feed(self, block: bytes) -> None:
        """Read the next lines, as UTF-8; the block ends at the end of a line, or within a very long one."""
        if b"\x1b" in block:
            block = ANSI.sub(b"", block)
        if b"\r" in block:
            block = block.replace(b"\r\n", b"\n")
        if b"\0" in block:
            block = HOLES.sub(b"", block)
        self._bytes += len(block)
        self._strange += len(block) - len(block.translate(None, CONTROL_BYTES))
        lines = block.split(b"\n")
        if not lines[-1]:
            lines.pop()
        if not lines:
            return
        numbers: Iterable[int] = range(self._number, self._number + len(lines))
        self._number += len(lines) if block.endswith(b"\n") else len(lines) - 1
        self._evidence.lines = self._number - 1
        if b"\r" in block or max(map(len, lines)) > MOST_OF_A_LOG_LINE:
            parts = [(number, part) for number, line in zip(numbers, lines, strict=True) for part in split_parts(line)]
            numbers, lines = [number for number, _ in parts], [part for _, part in parts]
            templates = [line.lower().translate(DIGITS) for line in lines]
        else:
            templates = block.lower().translate(DIGITS).split(b"\n")[: len(lines)]
        self._nearby.move_on(list(numbers), lines)
        self._read(list(numbers), lines, templates)
        self._evidence.last.extend(
            (number, read_text(line))
            for number, line in list(zip(numbers, lines, strict=True))[-self._evidence.most :]
            if line.strip()
        )

    def _read(self, numbers: list[int], lines: list[bytes], templates: list[bytes]) -> None:
        """Look at the lines whose words a pattern has, and at those that belong to a traceback."""
        kinds = self._classify(templates)
        position = 0  # of the line that was looked at last, and one
        for index in (index for index, kind in enumerate(kinds) if kind):
            if index < position:
                continue
            kind, template = kinds[index], templates[index]
            if kind & PROGRESS:
                self._progress(lines[index])
            if kind & EDGE:
                self._close_box(numbers[index], read_text(lines[index]))
            if kind & LOOK and self._kinds[template] & LOOK:
                position = index + 1
                text = read_text(lines[index])
                if begins_paragraph(text):
                    text, more = join_paragraph(text, map(read_text, lines[position : position + MOST_LINES]))
                    position += more
                if not self._look(numbers[index], text, shown=read_text(lines[index])):
                    self._tire(template)
                position = self._finish_message(position, numbers, lines)
            elif self._evidence.tracebacks.is_open or self._evidence.reports.is_open:
                position = self._finish_message(index, numbers, lines)

    def _close_box(self, number: int, raw: str) -> None:
        """Read the message that a line of dashes may end."""
        line = read_line(number, raw)
        box = self._boxes.close(line, self._nearby.above(number))
        if box and box.goes_on:
            self._evidence.excuse_box(box)
        elif box and box.complains and not self._evidence.knows(box):
            joined = replace(line, number=box.first, raw=box.lines[0][1], text=box.text)
            known = self._match(joined, line_words(box.text), level(box.text), excused=False)
            if not any(weight for weight, _ in known):
                self._evidence.note_box(box, number)

    def _progress(self, line: bytes) -> None:
        """Note a line of a training that goes on, and that its rank is not dead."""
        self._evidence.progress()
        if self._evidence.dead:
            self._evidence.dead.discard(_rank(read_line(0, read_text(line))))

    def _finish_message(self, position: int, numbers: list[int], lines: list[bytes]) -> int:
        """Look at every line from this position while a traceback or a report is open; returns the position behind it."""
        while (self._evidence.tracebacks.is_open or self._evidence.reports.is_open) and position < len(lines):
            self._look(numbers[position], read_text(lines[position]))
            position += 1
        return position

    def _tire(self, template: bytes) -> None:
        """Note that a line had no effect: the same line, or many that differ in digits only, need no more looks."""
        looks = self._looks[template] = self._looks.get(template, 0) + 1
        if looks >= (MOST_LOOKS if b"0" in template or CLONES in template else 1):
            self._kinds[template] &= ~LOOK

    def _classify(self, templates: list[bytes]) -> list[int]:
        """What there is to do for each line."""
        different = set(templates)
        fresh = different.difference(self._kinds)
        self._held += sum(map(len, fresh))
        if self._held > MOST_HELD:
            self._kinds, self._looks, fresh = {}, {}, different
            self._held = sum(map(len, fresh))
        for template in fresh:
            self._kinds[template] = line_kind(template, self._known_words, self._catalogue)
        return list(map(self._kinds.__getitem__, templates))

    def _look(self, number: int, raw: str, *, shown: str = "") -> bool:
        """Look at one line, or at a message in one line of which the first is shown; returns whether it showed anything."""
        if ESCAPED in raw and "Traceback (" in raw:
            # A worker process sent its traceback as one text, as PyTorch's data loaders, Ray and Ansible do.
            effects = [self._look(number, part) for part in raw.split(ESCAPED)]
            return any(effects)
        if len(CONTROL.findall(raw)) > MOST_CONTROL * len(raw) + 2 or "\0" in raw:
            return False
        line = read_line(number, raw)
        line = replace(line, raw=shown) if shown else line
        if self._evidence.reports.is_open:
            self._evidence.reports.follow(line)
        tracebacks = len(self._evidence.tracebacks.found)
        if self._evidence.tracebacks.feed(line):
            return True
        text = line.text
        if job := self._jobs.feed(text):
            self._begin_job(number, ended=job == JOB_ENDED)
            return True
        if self._alone and self._lone_ranks.feed(number, text):
            hit = Hit(number=number, text=self._evidence.show(line.raw), weight=WEIGHTS["error"])
            self._evidence.add_hit(self._alone, hit, tuple)
            self._evidence.fail(number)
            return True
        if len(self._evidence.tracebacks.found) > tracebacks:
            found = self._evidence.tracebacks.found[-1]
            if found.start <= self._excused_to or self._belongs_to_record(found, line.rank):
                self._evidence.tracebacks.found.pop()
                self._record = number, line.rank
                return True
            if not found.frames and self._is_notice(text):
                self._evidence.tracebacks.found.pop()
            else:
                self._evidence.fail(number)
                self._evidence.dead.add(_rank(line))
                self._evidence.reports.entitle(found)
                self._evidence.reports.feed_exception(found, line.rank)
        elif not text.strip() or is_code(text):
            if GUARDED.match(text):
                self._evidence.excuse(number - 1)
            return False
        words = line_words(text)
        if excused_lines := excuses_above(text, words):
            reach, beginning = excused_lines
            self._evidence.excuse(number - reach, beginning)
            return True
        if below := excuses_below(text, words):
            self._excused_to = number + below
            return True
        if text.startswith(TEST_BEGINS):
            self._test = number
        elif text.startswith(TEST_PASSED) and self._test:
            self._evidence.excuse(self._test)  # what a test prints that has passed is no failure
            return True
        if probe := self._probes.feed(number, text):
            self._evidence.excuse(*probe)
        severity, excused = level(text), number <= self._excused_to or is_excused(text, words)
        matched = self._match(line, words, severity, excused)
        weights = [weight for weight, _ in matched]
        if any(weights) and severity == ERROR:
            self._evidence.reports.read_on(line)
        if severity == ERROR and not weights and is_in_warning(text for _, text in self._nearby.above(number)):
            severity = WARNING
        if (weights and not any(weights)) or self._evidence.waits_at == number:
            self._harmless.add(text)
            return True
        if severity == ERROR and not excused and health.is_fatal(text):
            self._evidence.note_fatal(text)
        if not weights and health.shows_success(text, words):
            self._evidence.succeed(number, text)
            return True
        if severity != ERROR or excused:
            return bool(weights)
        if not weights and self._harmless.has_whole(text):
            return True
        report = None if weights else self._evidence.reports.feed(line)
        strength = report.strength if report else FOLLOWS
        if strength == ENDS or (report and report.of_system) or health.shows_failure(text, words):
            known = bool(matched) and all(goes_on for _, goes_on in matched)
            complains = strength < ENDS and (known or health.only_complains(text))
            strength = max(strength, FOLLOWS if report else COMPLAINS if complains else ERRS)
            self._evidence.errors.add(number, self._evidence.show(line.raw), strength)
            if complains:
                self._evidence.complained_at = number
            else:
                self._evidence.clearly = True
            self._evidence.fail(number)
            return True
        return report is not None or bool(weights)

    def _begin_job(self, number: int, *, ended: bool) -> None:
        """Forget other jobs that wrote to the same file; the one that has ended counts if no other one shows anything."""
        evidence, self._evidence = self._evidence, self._fresh()
        self._evidence.lines = evidence.lines
        evidence.lines = number
        evidence.last.extend(reversed([*islice(self._nearby.above(number), evidence.most)]))
        self._ended = evidence if ended else None

    def _belongs_to_record(self, traceback: Traceback, rank: str) -> bool:
        """Whether a logger printed a traceback with a record that is known to be harmless."""
        number, of_rank = self._record
        return 0 < traceback.start - number <= DETAILS and rank == of_rank and traceback.own_frame is None

    def _is_notice(self, text: str) -> bool:
        """Whether a line is known to look worse than it is."""
        candidates = self._catalogue.candidates(line_words(text))
        return any(found.failure.weight == WEIGHTS["notice"] and found.search(text) for found in candidates)

    def _match(self, line: Line, words: frozenset[str], severity: str, excused: bool) -> list[tuple[int, bool]]:
        """Note the failures of the catalogue that a line shows; returns their weights, and whether programs go on after them."""
        weights = []
        matches = [
            (alternative, match)
            for alternative in self._catalogue.candidates(words)
            if (match := self._matches(alternative, line, severity, excused))
        ]
        notices = [found.specific for found, _ in matches if found.failure.weight == WEIGHTS["notice"]]
        for alternative, match in matches:
            failure = alternative.failure
            if (
                failure.weight
                and notices
                and (failure.weight == WEIGHTS["report"] or alternative.specific < max(notices))
            ):
                continue  # a line that is known to be harmless is not taken for the words of a program that failed
            weight = failure.weight
            if severity == STATUS:
                weight = min(weight, WEIGHTS["symptom"])
            elif severity != ERROR and not failure.warned:
                weight = WEIGHTS["notice"]
            if self._evidence.was_ended(line) or (
                weight == WEIGHTS["report"] and follows(match.groupdict().get("reason"))
            ):
                weight = WEIGHTS["consequence"]
            values = {name: self._evidence.hide(value) for name, value in match.groupdict().items() if value}
            if failure.crashes and self._evidence.wants(failure):
                values |= {
                    name: self._evidence.hide(value) for name, value in crash_place(self._nearby.below(line)).items()
                }
            hit = Hit(
                number=line.number,
                text=self._evidence.show(line.raw, match[0]),
                weight=weight,
                values=values,
                specific=alternative.specific,
                status=severity == STATUS,
            )
            self._evidence.add_hit(failure, hit, lambda: self._nearby.above(line.number))
            if failure.traceback:
                self._record = line.number, line.rank
            if failure.waits:
                self._evidence.waits_at = line.number
            elif weight and severity != STATUS:
                self._evidence.fail(line.number)
            weights.append((weight, failure.goes_on))
        return weights

    def _matches(self, alternative: Alternative, line: Line, severity: str, excused: bool) -> re.Match[str] | None:
        """The place where a pattern matches a line, unless the line excuses itself."""
        if (excused or severity == INFO) and not alternative.failure.warned:
            return None
        return alternative.search(line.text)

    @property
    def next_line(self) -> int:
        """The number of the line that is read next."""
        return self._number

    @property
    def failed_at(self) -> int:
        """The number of the last line that showed a failure; 0 if none did."""
        return self._evidence.failed_at

    def conclude(self, *, failed: bool = False) -> Explanation:
        """What the log shows; `failed` if it is known that the program failed."""
        evidence = self._evidence
        if self._ended and not (evidence.hits or evidence.errors or evidence.tracebacks.found):
            evidence = self._ended
        evidence.tracebacks.close()
        evidence.tracebacks.found[:] = [
            found
            for found in evidence.tracebacks.found
            if not (found.is_cut and self._belongs_to_record(found, self._record[1]))
        ]
        if any(found.is_cut and found.start > evidence.success_at for found in evidence.tracebacks.found):
            evidence.fail(evidence.lines)  # the log ends before the exception
        evidence.reports.close()
        if first := self._probes.close():
            evidence.excuse_end(first)
        return conclude(evidence, failed=failed, is_text=self._strange <= MOST_CONTROL * self._bytes)


def _rank(line: Line) -> str:
    """The rank that printed a line, whatever the stream; empty if the line does not say so."""
    return STREAM.sub("", line.rank)
