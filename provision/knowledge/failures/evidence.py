"""What was noted while a log was read: matches of the catalogue, tracebacks, reports of programs, and signs of success."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace

from provision.knowledge.failures.boxes import Box
from provision.knowledge.failures.catalogue import WEIGHTS, KnownFailure
from provision.knowledge.failures.findings import EXCEPTION, Hit
from provision.knowledge.failures.health import shows_installation
from provision.knowledge.failures.last_words import ENDED, last_words
from provision.knowledge.failures.likely_lines import LikelyLines
from provision.knowledge.failures.lines import ANY, Line
from provision.knowledge.failures.pip_attempts import installed_by_pip, requirement
from provision.knowledge.failures.reported_errors import ReportReader
from provision.knowledge.failures.tracebacks import TracebackReader

# A line is shown up to this length.
SHOWN = 300
# What srun also prints if a person or a limit ended the job, before it says so.
STEP_ABORTED = "srun: Job step aborted"
# How many matches of an entry are kept.
KEPT = 8


class Evidence:
    """What a log has shown up to now; the memory does not depend on the length of the log."""

    def __init__(self, *, most: int, hide: Callable[[str], str]) -> None:
        self.most, self.hide = most, hide
        self.tracebacks = TracebackReader()
        self.reports = ReportReader()
        self.hits: dict[str, list[Hit]] = {}
        self.failures: dict[str, KnownFailure] = {}
        self.errors = LikelyLines(most)
        self.last: deque[tuple[int, str]] = deque(maxlen=most)
        self.lines = 0
        """The number of lines that were read."""
        self.ended_at = 0
        """The first line that says only that a launcher ended the ranks."""
        self.failed_at = self.went_on = self.complained_at = self.success_at = 0
        self.waits_at = 0
        """The last line with which a program waits or tries again."""
        self.unsure_box: tuple[Box, int] | None = None
        """The last message between lines of dashes that may be a failure, and its end."""
        self.clearly = False
        """Whether an error line says more than that something was not found."""
        self.well = self.installed = False
        self.fatal: list[str] = []
        """The first lines that say that a rank, a job or an installation is over because it failed."""
        self.dead: set[str] = set()
        """The ranks that ended with a traceback and printed nothing of a training since."""

    def add_hit(self, failure: KnownFailure, hit: Hit, above: Callable[[], Iterable[tuple[int, str]]]) -> None:
        """Keep a line that shows a failure; of many, the first and the strongest.

        `above` are the lines above it, the nearest first.
        """
        hits = self.hits.setdefault(failure.id, [])
        if not hits and (failure.elsewhere or hit.weight == WEIGHTS["consequence"]):
            hit = replace(hit, above=last_words(above()))
        self.failures[failure.id] = failure
        ends = failure.elsewhere and failure.weight == WEIGHTS["consequence"] and STEP_ABORTED not in hit.text
        if not self.ended_at and ends:
            self.ended_at = hit.number
        if len(hits) < KEPT:
            hits.append(hit)
        elif (weakest := min(hits, key=lambda known: known.weight)).weight < hit.weight:
            hits[hits.index(weakest)] = hit

    def wants(self, failure: KnownFailure) -> bool:
        """Whether another line that shows this failure may be kept."""
        return len(self.hits.get(failure.id, ())) < KEPT

    def knows(self, box: Box) -> bool:
        """Whether an entry of the catalogue says what a message means, and not only what it follows from."""
        numbers = box.numbers
        hits = (hit for hits in self.hits.values() for hit in hits if hit.weight > WEIGHTS["consequence"])
        return any(hit.number in numbers for hit in hits)

    def excuse_box(self, box: Box) -> None:
        """Note that a message says that its program goes on: what entries say of its lines is no failure."""
        numbers = box.numbers
        for name, hits in self.hits.items():
            if not self.failures[name].warned:
                hits[:] = [
                    replace(hit, weight=WEIGHTS["notice"])
                    if hit.number in numbers and not EXCEPTION.match(hit.text)
                    else hit
                    for hit in hits
                ]
        self._forget_box(box)

    def note_box(self, box: Box, end: int) -> None:
        """Note a message between lines of dashes that says that something is wrong, and that no entry of the catalogue knows.

        If it could also be a banner or a table, it counts only if the log ends with it, at the line `end`.
        """
        if not box.ends and not box.program:
            self.unsure_box = box, end
            return
        self._forget_box(box)
        report = self.reports.feed_box(box)
        self.errors.add(box.first, self.show(box.lines[0][1]), report.strength)
        self.clearly = True
        self.fail(box.first)

    def _forget_box(self, box: Box) -> None:
        """Forget what the lines of a message showed, each for itself."""
        numbers = box.numbers
        self.errors.forget(lambda number, _: number in numbers)
        self.reports.forget(lambda number, _: number in numbers)

    def was_ended(self, line: Line) -> bool:
        """Whether a line says that a rank was ended because the launcher ends all of them, as a line above it says."""
        return 0 < self.ended_at < line.number and ENDED.match(line.text) is not None

    def fail(self, number: int) -> None:
        """Note that something failed at this line."""
        self.failed_at, self.went_on, self.well, self.installed = number, 0, False, False

    def progress(self) -> None:
        """Note a line of a training that goes on."""
        self.went_on += 1
        self.reports.progress()

    def note_fatal(self, text: str) -> None:
        """Note a line that says that a rank, a job or an installation is over because it failed."""
        if len(self.fatal) < KEPT:
            self.fatal.append(text)

    def succeed(self, number: int, text: str) -> None:
        """Note a line that says that something ended well; an installation can end well before a program fails."""
        self.installed, self.success_at = True, number
        self.well = self.well or not shows_installation(text)
        if names := installed_by_pip(text):
            self._forget(lambda _, raw: requirement(raw) in names)
            self.fatal[:] = [line for line in self.fatal if requirement(line) not in names]

    def excuse(self, first: int, pattern: re.Pattern[str] = ANY) -> None:
        """Forget what the lines from this one on showed that begin so."""

        def is_excused(number: int, text: str) -> bool:
            return number >= first and pattern.match(text) is not None

        self._forget(is_excused)

    def excuse_end(self, first: int) -> None:
        """Forget what the lines from this one to the end of the log showed, and the last words, which are among them."""
        self.excuse(first)
        self.last.clear()

    def _forget(self, is_excused: Callable[[int, str], bool]) -> None:
        """Forget what the lines showed of which this is true, by number and text."""
        for hits in self.hits.values():
            hits[:] = [hit for hit in hits if not hit.weight or not is_excused(hit.number, hit.text)]
        self.errors.forget(is_excused)
        self.tracebacks.found[:] = [found for found in self.tracebacks.found if not is_excused(found.number, found.raw)]
        self.reports.forget(is_excused)

    def show(self, raw: str, message: str = "") -> str:
        """A line as it is shown: without secrets, and of a long one the part around the message."""
        text = self.hide(raw.strip())
        if len(text) <= SHOWN:
            return text
        at = max(0, text.find(message) - SHOWN // 4) if message else 0
        return text[text.find(" ", at) + 1 if at else 0 :][:SHOWN]
