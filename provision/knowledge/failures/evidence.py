"""What was noted while a log was read: matches of the catalogue, tracebacks, reports of programs, and signs of success."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from provision.knowledge.failures.catalogue import KnownFailure
from provision.knowledge.failures.findings import Hit
from provision.knowledge.failures.last_words import LastWords
from provision.knowledge.failures.likely_lines import LikelyLines
from provision.knowledge.failures.reported_errors import ReportReader
from provision.knowledge.failures.tracebacks import TracebackReader

# A line is shown up to this length.
SHOWN = 300
# How many lines above a line such as "Ignore above …" it excuses, and how many matches of an entry are kept.
REACH, KEPT = 4, 8


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
        self.words = LastWords(hide)
        self.lines = 0
        """The number of lines that were read."""
        self.failed_at = self.went_on = self.complained_at = self.success_at = 0
        self.clearly = False
        """Whether an error line says more than that something was not found."""
        self.well = self.installed = self.fatal = False
        self.dead: set[str] = set()
        """The ranks that ended with a traceback and printed nothing of a training since."""

    def add_hit(self, failure: KnownFailure, hit: Hit) -> None:
        """Keep a line that shows a failure; of many, the first and the strongest."""
        hits = self.hits.setdefault(failure.id, [])
        self.failures[failure.id] = failure
        self.words.note(failure, hit.number)
        if len(hits) < KEPT or hit.weight > min(known.weight for known in hits):
            hits.append(hit)

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

    def excuse(self, number: int) -> None:
        """Forget what the lines above this one showed."""
        first = number - REACH
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
