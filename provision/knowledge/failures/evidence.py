"""What was noted while a log was read: matches of the catalogue, tracebacks, reports of programs, and signs of success."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace

from provision.knowledge.failures.boxes import Box
from provision.knowledge.failures.catalogue import WEIGHTS, KnownFailure
from provision.knowledge.failures.findings import Hit
from provision.knowledge.failures.last_words import ENDED, last_words
from provision.knowledge.failures.likely_lines import LikelyLines
from provision.knowledge.failures.lines import Line
from provision.knowledge.failures.reported_errors import ReportReader
from provision.knowledge.failures.tracebacks import TracebackReader

# A line is shown up to this length.
SHOWN = 300
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
        self.clearly = False
        """Whether an error line says more than that something was not found."""
        self.well = self.installed = self.fatal = False
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
        if not self.ended_at and failure.elsewhere and failure.weight == WEIGHTS["consequence"]:
            self.ended_at = hit.number
        if len(hits) < KEPT or hit.weight > min(known.weight for known in hits):
            hits.append(hit)

    def knows(self, first: int, end: int) -> bool:
        """Whether an entry of the catalogue says what one of these lines means, and not only what it follows from."""
        hits = (hit for hits in self.hits.values() for hit in hits if hit.weight != WEIGHTS["consequence"])
        return any(first <= hit.number < end for hit in hits)

    def excuse_box(self, box: Box, end: int) -> None:
        """Note that a message says that its program goes on: what entries say of its lines is no failure."""
        for name, hits in self.hits.items():
            if not self.failures[name].warned:
                hits[:] = [
                    replace(hit, weight=WEIGHTS["notice"]) if box.first <= hit.number < end else hit for hit in hits
                ]
        self.errors.forget(box.first)
        self.reports.forget(box.first)

    def note_box(self, box: Box) -> None:
        """Note a message between lines of dashes that says that something failed, and that no entry of the catalogue knows."""
        self.errors.forget(box.first)
        self.reports.forget(box.first)
        report = self.reports.feed_box(box)
        self.errors.add(box.first, self.show(box.raw), report.strength)
        self.clearly = True
        self.fail(box.first)

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

    def succeed(self, number: int, *, installation: bool) -> None:
        """Note a line that says that something ended well; an installation can end well before a program fails."""
        self.installed, self.success_at = True, number
        self.well = self.well or not installation

    def excuse(self, first: int) -> None:
        """Forget what the lines from this one on showed."""
        for hits in self.hits.values():
            hits[:] = [hit for hit in hits if hit.number < first]
        self.errors.forget(first)
        self.tracebacks.found[:] = [found for found in self.tracebacks.found if found.number < first]
        self.reports.forget(first)

    def show(self, raw: str, message: str = "") -> str:
        """A line as it is shown: without secrets, and of a long one the part around the message."""
        text = self.hide(raw.strip())
        if len(text) <= SHOWN:
            return text
        at = max(0, text.find(message) - SHOWN // 4) if message else 0
        return text[text.find(" ", at) + 1 if at else 0 :][:SHOWN]
