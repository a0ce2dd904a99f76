"""Reads a log of any length once, in blocks of whole lines, and concludes whether it shows a failure, and which.

Most lines of a log differ only in their numbers. With all digits replaced by `0`, each different line is looked at once; the
words of its text decide whether any pattern can match. Only such lines are decoded, and only patterns with their words are tried.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace

from provision.knowledge.failures import health
from provision.knowledge.failures.catalogue import WEIGHTS, Alternative, Catalogue, KnownFailure
from provision.knowledge.failures.findings import Explanation, Finding, Hit, give_way
from provision.knowledge.failures.likely_lines import LikelyLines
from provision.knowledge.failures.line_parts import MOST_OF_A_LOG_LINE, read_text, split_parts
from provision.knowledge.failures.lines import (
    ANSI,
    ERROR,
    INFO,
    STATUS,
    Line,
    excuses_above,
    is_code,
    is_excused,
    level,
    read_line,
)
from provision.knowledge.failures.own_program import lacks_class_of_saved_object, program_failure
from provision.knowledge.failures.paragraphs import MOST_LINES, begins_paragraph, join_paragraph
from provision.knowledge.failures.report_forms import COMPLAINS, ENDS, ERRS, FOLLOWS, FORM_WORDS, follows
from provision.knowledge.failures.reported_errors import ReportReader, reported_failure
from provision.knowledge.failures.tracebacks import TracebackReader, tried_imports
from provision.knowledge.failures.words import line_words

# A line is shown up to this length.
SHOWN = 300
# What is remembered of lines that were looked at: bytes, and looks after which a line without effect is not looked at again.
MOST_HELD, MOST_LOOKS = 4_000_000, 64
DIGITS = bytes.maketrans(b"123456789", b"000000000")
# Lines with these words are looked at even if no entry of the catalogue has them.
STRUCTURE = (
    frozenset(("cell", "ipython", "traceback", "ignored")) | health.FAILED_WORDS | health.SUCCESS_WORDS | FORM_WORDS
)
# Parts of lines that are looked at for their form: exceptions, the places of tracebacks, fatal lines of TensorFlow.
FORMS = (b"error", b"exception", b'file "', b"file ~", b"file /", b"input in ", b".py in ", b": f ", b"f0000 00:")
# A failure of these phases can be followed by an installation that works.
BUILDING = frozenset(("plan", "fetch", "build", "import"))
# The name of the stream in what Open MPI puts before the lines of a rank.
STREAM = re.compile(r"<std\w+>:?|:$")
# How a line break is written in the `repr` of a text.
ESCAPED = "\\n"
DULL, LOOK, PROGRESS = 0, 1, 2
# How many lines above a line such as "Ignore above …" it excuses, and how many matches of an entry are kept.
REACH, KEPT = 4, 8
# How many characters of a line may be control characters, before it is not text.
MOST_CONTROL = 0.05
CONTROL_BYTES = bytes((*range(8), *range(14, 27), *range(28, 32)))
CONTROL = re.compile("[\\x00-\\x07\\x0e-\\x1a\\x1c-\\x1f\\ufffd]")


class LogReader:
    """Reads a log and remembers what it shows; the memory does not depend on the length of the log."""

    def __init__(self, catalogue: Catalogue, *, most: int = 8, hide: Callable[[str], str] = str) -> None:
        self._catalogue, self._most, self._hide = catalogue, most, hide
        self._known_words = STRUCTURE | catalogue.index.keys()
        self._kinds: dict[bytes, int] = {}
        self._held = 0
        self._looks: dict[bytes, int] = {}
        self._tracebacks = TracebackReader()
        self._reports = ReportReader()
        self._hits: dict[str, list[Hit]] = {}
        self._failures: dict[str, KnownFailure] = {}
        self._errors = LikelyLines(most)
        self._excuses: deque[int] = deque(maxlen=REACH)
        self._last: deque[tuple[int, str]] = deque(maxlen=most)
        self._number = 1
        self._failed_at = self._went_on = self._complained_at = self._success_at = 0
        self._clearly = False  # whether an error line says more than that something was not found
        self._well = self._installed = self._fatal = False
        self._dead: set[str] = set()  # the ranks that ended with a traceback and printed nothing of a training since
        self._bytes = self._strange = 0

    def feed(self, block: bytes) -> None:
        """Read the next lines, as UTF-8; the block ends at the end of a line, or within a very long one."""
        if b"\x1b" in block:
            block = ANSI.sub(b"", block)
        if b"\r" in block:
            block = block.replace(b"\r\n", b"\n")
        self._bytes += len(block)
        self._strange += len(block) - len(block.translate(None, CONTROL_BYTES))
        lines = block.split(b"\n")
        if not lines[-1]:
            lines.pop()
        if not lines:
            return
        numbers: Iterable[int] = range(self._number, self._number + len(lines))
        self._number += len(lines) if block.endswith(b"\n") else len(lines) - 1
        if b"\r" in block or max(map(len, lines)) > MOST_OF_A_LOG_LINE:
            parts = [(number, part) for number, line in zip(numbers, lines, strict=True) for part in split_parts(line)]
            numbers, lines = [number for number, _ in parts], [part for _, part in parts]
            templates = [line.lower().translate(DIGITS) for line in lines]
        else:
            templates = block.lower().translate(DIGITS).split(b"\n")[: len(lines)]
        self._read(list(numbers), lines, templates)
        self._last.extend(
            (number, read_text(line))
            for number, line in list(zip(numbers, lines, strict=True))[-self._most :]
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
            if kind & LOOK and self._kinds[template] & LOOK:
                position = index + 1
                text = read_text(lines[index])
                if begins_paragraph(text):
                    text, more = join_paragraph(text, map(read_text, lines[position : position + MOST_LINES]))
                    position += more
                if not self._look(numbers[index], text, shown=read_text(lines[index])):
                    self._tire(template)
                position = self._finish_message(position, numbers, lines)
            elif self._tracebacks.is_open or self._reports.is_open:
                position = self._finish_message(index, numbers, lines)

    def _progress(self, line: bytes) -> None:
        """Note a line of a training that goes on."""
        self._went_on += 1
        self._reports.progress()
        if self._dead:
            self._dead.discard(_rank(read_line(0, read_text(line))))

    def _finish_message(self, position: int, numbers: list[int], lines: list[bytes]) -> int:
        """Look at every line from this position while a traceback or a report is open; returns the position behind it."""
        while (self._tracebacks.is_open or self._reports.is_open) and position < len(lines):
            self._look(numbers[position], read_text(lines[position]))
            position += 1
        return position

    def _tire(self, template: bytes) -> None:
        """Note that a line had no effect: the same line, or many that differ in digits only, need no more looks."""
        looks = self._looks[template] = self._looks.get(template, 0) + 1
        if looks >= (MOST_LOOKS if b"0" in template else 1):
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
            text = template.decode("utf-8", "replace")
            words = line_words(text)
            kind = LOOK if template[:2] == b"ok" or any(form in template for form in FORMS) else DULL
            if kind == DULL and not words.isdisjoint(self._known_words):
                kind = LOOK if words & STRUCTURE or self._catalogue.candidates(words) else DULL
            if not words.isdisjoint(health.PROGRESS_WORDS) and health.shows_progress(text):
                kind |= PROGRESS
            self._kinds[template] = kind
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
        if self._reports.is_open:
            self._reports.follow(line)
        tracebacks = len(self._tracebacks.found)
        if self._tracebacks.feed(line):
            return True
        text = line.text
        if len(self._tracebacks.found) > tracebacks:
            self._fail(number)
            self._dead.add(_rank(line))
            self._reports.feed_exception(self._tracebacks.found[-1], line.rank)
        elif not text.strip() or is_code(text):
            return False
        words = line_words(text)
        if excuses_above(text, words):
            self._excuse(number)
            return True
        severity, excused = level(text), is_excused(text, words)
        weights = self._match(line, words, severity, excused)
        if weights and not any(weights):
            return True
        if severity == ERROR and not excused and health.is_fatal(text):
            self._fatal = True
        if not weights and health.shows_success(text, words):
            self._installed, self._success_at = True, number
            self._well = self._well or not health.shows_installation(text)
            return True
        if severity != ERROR or excused:
            return bool(weights)
        report = None if weights else self._reports.feed(line)
        strength = report.strength if report else FOLLOWS
        if strength == ENDS or (report and report.of_system) or health.shows_failure(text, words):
            complains = strength < ENDS and health.only_complains(text)
            strength = max(strength, FOLLOWS if report else COMPLAINS if complains else ERRS)
            self._errors.add(number, self._show(line.raw), strength)
            if complains:
                self._complained_at = number
            else:
                self._clearly = True
            self._fail(number)
            return True
        return report is not None or bool(weights)

    def _match(self, line: Line, words: frozenset[str], severity: str, excused: bool) -> list[int]:
        """Note the failures of the catalogue that a line shows; returns their weights."""
        weights = []
        matches = [
            (alternative, match)
            for alternative in self._catalogue.candidates(words)
            if (match := self._matches(alternative, line, severity, excused))
        ]
        known = any(alternative.failure.weight == WEIGHTS["notice"] for alternative, _ in matches)
        for alternative, match in matches:
            failure = alternative.failure
            if known and failure.weight == WEIGHTS["report"]:
                continue  # a line that is known to be harmless is not taken for the words of a program that failed
            weight = failure.weight
            if severity == STATUS:
                weight = min(weight, WEIGHTS["symptom"])
            elif severity != ERROR and not failure.warned:
                weight = WEIGHTS["notice"]
            if weight == WEIGHTS["report"] and follows(match.groupdict().get("reason")):
                weight = WEIGHTS["consequence"]
            values = {name: self._hide(value) for name, value in match.groupdict().items() if value}
            hits = self._hits.setdefault(failure.id, [])
            self._failures[failure.id] = failure
            if len(hits) < KEPT or weight > min(hit.weight for hit in hits):
                hits.append(
                    Hit(
                        number=line.number,
                        text=self._show(line.raw, match[0]),
                        weight=weight,
                        values=values,
                        specific=alternative.specific,
                        status=severity == STATUS,
                    )
                )
            if weight and severity != STATUS:
                self._fail(line.number)
            weights.append(weight)
        return weights

    def _matches(self, alternative: Alternative, line: Line, severity: str, excused: bool) -> re.Match[str] | None:
        """The place where a pattern matches a line, unless the line excuses itself."""
        if (excused or severity == INFO) and not alternative.failure.warned:
            return None
        return alternative.search(line.text)

    def _fail(self, number: int) -> None:
        """Note that something failed at this line."""
        self._failed_at, self._went_on, self._well, self._installed = number, 0, False, False

    def _excuse(self, number: int) -> None:
        """Forget what the lines above this one showed."""
        first = number - REACH
        for hits in self._hits.values():
            hits[:] = [hit for hit in hits if hit.number < first]
        self._errors.forget(first)
        self._tracebacks.found[:] = [found for found in self._tracebacks.found if found.number < first]
        self._reports.forget(first)

    def conclude(self, *, failed: bool = False) -> Explanation:
        """What the log shows; `failed` if it is known that the program failed."""
        self._tracebacks.close()
        self._reports.close()
        findings = give_way(list(self._findings(failed=failed)))
        causes = [found for found in findings if found.hit.weight > WEIGHTS["notice"]]
        if not failed and not self._errors and not self._tracebacks.found:
            causes = causes if any(not found.hit.status for found in causes) else []
        verdict = "healthy"
        if failed or not self._ended_well(causes):
            verdict = "known" if causes else "unknown" if failed or self._shows_failure() else "healthy"
        return Explanation(
            verdict=verdict,
            findings=tuple(causes if verdict == "known" else [found for found in findings if not found.hit.weight]),
            lines=self._lines(causes if verdict == "known" else []),
            is_text=self._strange <= MOST_CONTROL * self._bytes,
            length=self._number - 1,
            ended=(self._well or self._installed) and self._success_at >= self._number - health.NEAR_END,
        )

    def _shows_failure(self) -> bool:
        """Whether the log shows a failure that no entry of the catalogue names."""
        if self._fatal:
            return True
        if not self._errors:
            return bool(self._tracebacks.found)
        if (
            self._errors.strongest < ENDS
            and self._number - self._failed_at > health.AFTER_ERROR
            and not self._tracebacks.found
        ):
            return False
        lines_after = sum(1 for number, _ in self._last if number > self._complained_at)
        return self._clearly or bool(self._tracebacks.found) or lines_after < health.AFTER_COMPLAINT

    def _ended_well(self, causes: list[Finding]) -> bool:
        """Whether what the log shows after its last failure excuses all failures."""
        if self._fatal or self._dead - {""}:
            return False
        if self._well:
            return True
        if self._installed:
            return not any(BUILDING.isdisjoint(found.failure.phase) for found in causes)
        return self._went_on >= (health.WENT_ON_AFTER_TRACEBACK if self._tracebacks.found else health.WENT_ON)

    def _findings(self, *, failed: bool) -> Iterable[Finding]:
        """Every failure that the log shows, with its best line: the strongest, then the first."""
        explained = set()
        followed = {found.after.number for found in self._tracebacks.found if found.after}
        # A saved object needs a module that the package never had, or has no more: it is not the module that is missing.
        unpickled = {found.number for found in self._tracebacks.found if lacks_class_of_saved_object(found)}
        tried = unpickled | tried_imports(self._tracebacks.found)
        for name, hits in self._hits.items():
            if hits:
                hits = [replace(hit, weight=hit.weight - 1) if hit.number in tried else hit for hit in hits]
                best = min(hits, key=lambda hit: (-hit.weight, hit.number))
                explained |= {hit.number for hit in hits if hit.weight >= WEIGHTS["symptom"]}
                yield Finding(failure=self._failures[name], hit=best)
        causes, of_program = set(), set()
        for found in self._tracebacks.found:
            if found.number in followed and not found.after:
                continue
            if (
                (found.number not in explained or found.number in unpickled)
                and (failure := program_failure(found))
                and failure.cause not in causes
            ):
                causes.add(failure.cause)
                of_program.add(found.number)
                yield self._quote(failure, found.number, found.raw, found.exception, ends=found.names_end)
        if failed or self._shows_failure():
            report = self._reports.best(explained | followed | of_program)
            if report:
                failure, ends = reported_failure(report, WEIGHTS["report"]), report.strength == ENDS
                yield self._quote(failure, report.number, report.raw, report.text, ends=ends)

    def _quote(self, failure: KnownFailure, number: int, raw: str, message: str, *, ends: bool) -> Finding:
        """A failure that contains words of the log; no secret is quoted."""
        hit = Hit(number=number, text=self._show(raw, message), weight=failure.weight)
        failure = replace(failure, cause=self._hide(failure.cause), hint=self._hide(failure.hint))
        return Finding(failure=failure, hit=hit, quoted=ends)

    def _lines(self, causes: list[Finding]) -> tuple[tuple[int, str], ...]:
        """The deciding line, the end of the first traceback, and the lines that look most like errors; else the last lines."""
        shown = {found.hit.number: found.hit.text for found in causes[:1]}
        for found in self._tracebacks.found[:1]:
            shown.setdefault(found.number, self._show(found.raw))
        texts = set(shown.values())
        shown |= {number: text for number, text in self._errors.choose(self._most) if text not in texts}
        lines = list(shown.items())[: self._most]
        return tuple(lines or [(number, self._show(text)) for number, text in self._last])

    def _show(self, raw: str, message: str = "") -> str:
        """A line as it is shown: without secrets, and of a long one the part around the message."""
        text = self._hide(raw.strip())
        if len(text) <= SHOWN:
            return text
        at = max(0, text.find(message) - SHOWN // 4) if message else 0
        return text[text.find(" ", at) + 1 if at else 0 :][:SHOWN]


def _rank(line: Line) -> str:
    """The rank that printed a line, whatever the stream; empty if the line does not say so."""
    return STREAM.sub("", line.rank)


def explain(blocks: Iterable[bytes], catalogue: Catalogue, *, failed: bool = False) -> Explanation:
    """What a log shows, in blocks of whole lines."""
    reader = LogReader(catalogue)
    for block in blocks:
        reader.feed(block)
    return reader.conclude(failed=failed)
