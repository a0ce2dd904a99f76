"""What a program says itself about its failure, in one of the forms that many programs share.

Thousands of programs print their errors as `PROGRAM: error: TEXT`, `fatal: TEXT` or `PROGRAM: cannot open FILE: No such file or
directory`, and runtimes of languages have their own forms. Such a line is quoted if no entry of the catalogue names the failure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace

from provision.knowledge.failures.boxes import Box
from provision.knowledge.failures.catalogue import KnownFailure
from provision.knowledge.failures.error_texts import find_error_text, names_error_text
from provision.knowledge.failures.forms import ENDS, ERRS, FOLLOWS, NAMED
from provision.knowledge.failures.lines import ERROR, Line, level
from provision.knowledge.failures.report_forms import FRAME, HEADING, SKIPPED, STACK, report_forms
from provision.knowledge.failures.tracebacks import UNSHOWN, Traceback
from provision.knowledge.failures.words import word_set

# So many reports of each strength are kept; the text of one is in the next so many lines; so many are joined.
MOST_KEPT, MOST_FOLLOWING, MOST_JOINED = 12, 6, 3
# What is around the text of a message, as frames of lines.
EDGES = " \t*|!#>-=│+%╭╮╰╯─"
# So many lines of a training after a report show that the program went on.
WENT_ON = 3
LONGEST = 300
# A stack of HDF5 begins with this; there are so many lines from one of its calls to the next.
HDF5, TOP, IN_STACK = "HDF5", "#000:", 3
ID = "reported-error"
# Names before a colon that are no programs.
_NO_PROGRAM = word_set(
    "warning Warning note Note info Info hint Hint INFO DEBUG WARNING NOTE help http https ftp file import from at in On on "
    "Solution SOLUTION "
    "Reason reason Message message Description Details Exception Error error state State status Status line Line Node Host host"
)
# What is announced is all that can be wrong, or a list of calls, and not what was wrong.
NO_REASON = re.compile(r"\b(?:reasons|causes)\b|^Backtrace\b|\b(?i:stack trace(?:back)?)\b|\bstderr begin:$")
# The text of an error number of PETSc: the line below says what is wrong. Source: PETSc, src/sys/error/err.c.
PETSC_CLASS = re.compile(
    r"PETSC ERROR: (?:No support for this operation\b.*|Corrupt argument|Nonconforming object sizes|Argument out of range|"
    r"Invalid (?:argument|pointer)|Object is in wrong state|Arguments? (?:have|are) (?:incompatible|in)\b.*|"
    r"Error in external library|Unknown type.*|Petsc has generated inconsistent data|Wrong type of object|"
    r"Floating point exception|Zero pivot in LU|Missing external package|Operation performed in wrong order)[^:]{0,80}:?$"
)
# What PETSc puts before each of its lines.
PETSC = re.compile(r"\[\d+\]PETSC ERROR: (?!-{3}|See |Petsc |Configure|#\d|Option|WARNING)")
# A line that begins so is what the heading above it announces, also if it says `Warning:`.
REASON = "Reason: "
# A text that ends so continues in the next line.
GOES_ON = re.compile(
    r":\s*$|\breason(?: given)? (?:is|was)$|\b(?:because|due to|compiled for|was|were)$|"
    r"(?:[Ff]ailed|[Uu]nable) to (?:continue|proceed)\.?$|"
    # oneCCL: a check of its own, and below it what that means.
    r"^condition \S.{1,300} failed$"
)
# The code of a traceback, which ranks that print at the same time put behind the name of an exception.
IMPORT = re.compile(r"\s*(?:from [\w.]+ )?import \w")
# How unittest begins what it says of a test that failed.
TEST_FAILED = ("ERROR: ", "FAIL: ")
# Words of prose before a colon: what is behind it is an error of a program that the line does not name.
_PROSE = word_set("because Because cause Cause caused")
# Exceptions that say that another program or rank failed, or that the program was ended.
_FOLLOWING = word_set(
    "CalledProcessError SystemExit KeyboardInterrupt ChildFailedError RayTaskError ProcessRaisedException SubprocessError "
    "HorovodInternalError ProcessExitedException RayActorError WorkerCrashedError BackendUnavailable CancelledError AbortedError "
    "ProcessError"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A message in which a program says that it failed."""

    number: int
    raw: str
    text: str
    strength: int
    program: str = ""
    """The program that prints it; empty if the line does not name it."""
    place: str = ""
    """The place in a source or a script."""
    of_system: bool = False
    """Whether it contains a text of the system, such as `Permission denied`."""
    steps: int = 0
    """How many lines of a training were read before it."""


@dataclass(slots=True)
class _Open:
    """A report whose text continues in the next lines."""

    report: Report
    lines: list[str] = field(default_factory=list)
    last: str = ""
    """The last line of a stack of calls."""
    left: int = MOST_FOLLOWING

    @property
    def more(self) -> str:
        """What the next lines said."""
        return self.last or " ".join(self.lines)

    @property
    def wanted(self) -> int:
        """How many more lines belong to the text: several if its first line is only a heading."""
        return 1 if " " in self.report.text.strip() else MOST_JOINED

    def is_whole(self, text: str) -> bool:
        """Whether the text ends with this line, which is empty if it only separates; a line with a colon at its end does not."""
        if not self.lines or self.lines[-1].endswith(":"):
            return False
        return not text or len(self.lines) >= self.wanted

    def whole(self) -> Report:
        """The report with its whole text."""
        if self.last:
            return replace(self.report, text=f"{self.report.text.partition(', error stack')[0]}: {self.last}")
        return replace(self.report, text=" ".join(part for part in (self.report.text, *self.lines) if part))


class ReportReader:
    """Collects what programs report."""

    def __init__(self) -> None:
        self.found: list[Report] = []
        self.announced: dict[int, str] = {}
        """What the lines with these numbers announce, in the lines after them."""
        self._open: dict[str, _Open] = {}
        self.steps = 0
        """The number of lines of a training that goes on."""

    @property
    def is_open(self) -> bool:
        """Whether the next lines may be the text of a report."""
        return bool(self._open)

    def progress(self) -> None:
        """Note a line of a training that goes on."""
        self.steps += 1

    def feed(self, line: Line) -> Report | None:
        """Read a line that no entry of the catalogue names; returns its report, if it is one."""
        report = read_report(line)
        if report is None:
            return None
        self._begin(report, line.rank)
        return _weaken(report)

    def read_on(self, line: Line) -> None:
        """Read what a line announces that an entry of the catalogue names already."""
        text = line.text.rstrip()
        if (
            (text.endswith(":") or PETSC_CLASS.search(text))
            and not NO_REASON.search(text)
            and len(self.announced) < MOST_KEPT
            and (line.rank not in self._open or PETSC_CLASS.search(text))
        ):
            self.announced[line.number] = ""
            self._begin(Report(number=line.number, raw=line.raw, text=text, strength=FOLLOWS), line.rank)

    def feed_exception(self, traceback: Traceback, rank: str) -> None:
        """Read the exception at the end of a traceback; its text may continue."""
        if report := read_exception(traceback):
            self._begin(report, rank)

    def feed_box(self, box: Box) -> Report:
        """Keep a message between lines of dashes, which says that something is wrong."""
        report = Report(
            number=box.first,
            raw=box.lines[0][1],
            text=box.text,
            strength=ENDS if box.ends else ERRS,
            program=box.program,
            steps=self.steps,
        )
        self._add(report)
        return report

    def entitle(self, traceback: Traceback) -> None:
        """Note that what a logger says in the line above a traceback is only its title, or unittest above a line of dashes.

        The last words of another program, which this one has started, are no title.
        """
        if not traceback.frames:
            return
        self.found[:] = [
            replace(report, strength=FOLLOWS)
            if (report.number == traceback.start - 1 and not (report.strength == ENDS and report.program))
            or (report.number == traceback.start - 2 and report.raw.startswith(TEST_FAILED))
            else report
            for report in self.found
        ]

    def _begin(self, report: Report, rank: str) -> None:
        """Keep a report, or wait for the rest of its text."""
        report = replace(report, steps=self.steps, text=HEADING.sub("\\1", report.text))
        if not report.text or _is_unfinished(report.text):
            if rank in self._open and not report.text:
                return  # `Error:` alone in a line, below the heading of Snakemake
            if rank in self._open:
                self._keep(self._open[rank])
            self._open[rank] = _Open(report=report)
        else:
            self._keep(_Open(report=report))

    def follow(self, line: Line) -> None:
        """Read a line as the text of the report above it, if that needs one."""
        opened = self._open.get(line.rank)
        if opened is None or opened.report.number == line.number:
            return
        if level(line.text) != ERROR and not line.text.startswith(REASON):
            del self._open[line.rank]
            self._keep(opened)
            return
        text = PETSC.sub("", line.text.strip(EDGES))
        stack = STACK.match(text)
        if stack and opened.report.text.endswith("stack:"):
            opened.last = stack[1] or opened.last  # MPICH: the function that failed first is in the last line
            return
        opened.left -= 1
        if text and not stack and len(opened.lines) < MOST_JOINED and not SKIPPED.match(text):
            opened.lines.append(text)
        if opened.last or opened.is_whole(text) or not opened.left:
            del self._open[line.rank]
            self._keep(opened)

    def forget(self, is_excused: Callable[[int, str], bool]) -> None:
        """Forget the reports in lines of which this is true, by number and text: a later line excuses them."""
        self.found[:] = [report for report in self.found if not is_excused(report.number, report.raw)]
        self._open = {
            rank: opened
            for rank, opened in self._open.items()
            if not is_excused(opened.report.number, opened.report.raw)
        }

    def close(self) -> None:
        """Keep the reports whose text did not come."""
        for opened in self._open.values():
            self._keep(opened)
        self._open.clear()

    def _keep(self, opened: _Open) -> None:
        """Keep a report; of many with the same strength the first ones."""
        report = opened.whole()
        if report.number in self.announced:
            self.announced[report.number] = opened.more
        if report.number in self.announced or not report.text:
            return
        self._add(_weaken(report))

    def _add(self, report: Report) -> None:
        """Keep a report, if there are not many of its strength; of a stack of HDF5 the last line, where the error began."""
        above = self.found[-1] if self.found and report.program == HDF5 else None
        if above and above.program == HDF5 and report.number - above.number <= IN_STACK and TOP not in report.raw:
            self.found[-1] = report
            return
        if sum(1 for known in self.found if known.strength == report.strength) < MOST_KEPT:
            self.found.append(report)

    def best(self, explained: Collection[int], least: int = NAMED) -> Report | None:
        """The report that most likely names the cause, if one is at least so strong: the strongest, of these the first.

        Those in the lines with these numbers have another explanation.
        """
        candidates = [
            (strength, -report.number, report)
            for report in self.found
            if (strength := self._strength(report)) >= least and report.number not in explained
        ]
        return max(candidates, key=lambda candidate: candidate[:2])[2] if candidates else None

    def _strength(self, report: Report) -> int:
        """How sure a report is the error that ended the program, now that more lines were read."""
        if self.steps - report.steps < WENT_ON:
            return report.strength
        return ERRS if report.strength == ENDS else FOLLOWS


def read_report(line: Line) -> Report | None:
    """The report in a line."""
    text = line.text.rstrip()
    for form, pattern in report_forms():
        found = pattern.match(text)
        if found is None:
            continue
        groups = found.groupdict()
        name = groups.get("program") or form.program
        name = "" if name in _PROSE else name
        message = groups["text"].strip(EDGES)
        of_system = names_error_text(message)
        if _is_no_program(name) or (form.only_system and not of_system):
            continue
        return Report(
            number=line.number,
            raw=line.raw,
            text=message,
            strength=form.strength,
            program=name,
            place=(groups.get("place") or "").strip(),
            of_system=of_system,
        )
    return None


def _is_unfinished(text: str) -> bool:
    """Whether a message continues in the next line."""
    return GOES_ON.search(text) is not None or PETSC_CLASS.search(text) is not None


def _weaken(report: Report) -> Report:
    """The report, as one that follows from an error elsewhere if its text says no more."""
    return replace(report, strength=FOLLOWS) if report.text and FRAME.match(report.text) else report


def _is_no_program(name: str) -> bool:
    """Whether what is before a colon is no program: another word, or the class of an exception."""
    return name.rpartition("/")[2] in _NO_PROGRAM or name.endswith(("Error", "Exception", "Warning"))


def read_exception(traceback: Traceback) -> Report | None:
    """The report that an exception of Python is, if no place in the user's program explains it."""
    if traceback.exception == UNSHOWN or not (traceback.text or traceback.raw.rstrip().endswith(":")):
        return None
    mixed = IMPORT.match(traceback.text)
    follows = traceback.exception in _FOLLOWING or mixed or (traceback.text and FRAME.match(traceback.text))
    strength = FOLLOWS if follows else ERRS
    package = next((frame.package for frame in reversed(traceback.frames) if frame.package), None)
    if strength == ERRS and traceback.frames:
        strength = ENDS
    return Report(
        number=traceback.number,
        raw=traceback.raw,
        text=f"{traceback.exception}: {traceback.text}".rstrip(),
        strength=strength,
        program=package or "Python" if traceback.frames else "",
    )


def reported_failure(report: Report, weight: int) -> KnownFailure:
    """What a report says, as a failure: who says it, the class of the problem, and what to look at."""
    text = report.text if len(report.text) <= LONGEST else f"{report.text[:LONGEST]}…"
    who = f"`{report.program}`" if report.program and " " not in report.program else report.program or "a program"
    where = f" (`{report.place}`)" if report.place else ""
    return failure_in_words(
        f"{who} reports an error{where}: {text}", report.text, hint=_hint(report), name=ID, weight=weight
    )


def failure_in_words(cause: str, text: str, *, hint: str, name: str, weight: int) -> KnownFailure:
    """A failure in the words of a program: what a text of the system among them means comes with its own hint."""
    known = find_error_text(text)
    if known:
        meaning, path = known
        cause, hint = f"{cause}; that means: {meaning.meaning}", meaning.hint.replace("{path}", path)
    return KnownFailure(
        id=name,
        message="",
        match=(),
        cause=cause,
        hint=hint,
        source="the program that printed it; no entry of the catalogue names it",
        weight=weight,
    )


def _hint(report: Report) -> str:
    """What to look at if the text of the error is not one of the system's."""
    if report.place:
        return f"look at `{report.place}`, and at the lines of the log above this one"
    if report.program and " " not in report.program:
        return f"look at the lines of the log above it; the manual and the issues of `{report.program}` may explain its words"
    return (
        "look at the lines of the log around this one; the manual of the program that printed it may explain its words"
    )
