"""What a log shows: one order of all failures that were found in it, and whether they count.

How failures are ranked
=======================

Each entry of `known/` has a level. From the strongest:

1. `cause`: this alone is what went wrong. The answer is *sure*, unless another entry calls the same line a cause.
2. `error`: an error that can have several causes; `repeated`: a line that is an error if it comes three times; `complaint`: a
   line after which programs often go on, or that follows from an error above it, as a file that is missing. All are *likely*.
3. `symptom`: how a program died, not why. This and all that follow are a *guess*.
4. `report`: the words of a program that no other entry knows.
5. `remark`: words that programs print, and often go on after.
6. `wait`: the program waits or tries again; it counts only if it is the last line of the log, and is *likely* then.
7. `consequence`: something failed elsewhere. If a log shows nothing else, the failure is unknown.
8. `notice`: healthy logs have the line too. A line that calls itself a warning is no more than that, unless its entry says
   `warned: yes`; a line that says that it does not matter (level `excuse`) shows nothing.

The strongest failure leads; of equal ones the first in the log; of one line the entry whose pattern requires most of it. Then:

- A complaint below another failure is a report, unless it names an absolute path. More than AFTER_PREAMBLE lines above the last
  other failure it is a consequence, because the program had gone on.
- A time limit is a symptom if an exception is at most DIRECTLY lines above it: the others waited for that process.
- What is below the line with which a scheduler ends a job is a consequence, unless it is a cause.
- If exceptions followed from each other, the last one speaks for the program; an import that it tried in vain is a symptom.
- If there are only consequences, the last words of the program above the first of them are quoted.
- Of several runs in one file the last one leads, unless it says less (`explain`).

A failure does not count if the log shows that it was overcome: a line says that all ended well, or a training goes on (WENT_ON
lines of it, or WENT_ON_AFTER_TRACEBACK), or the log goes on for AFTER_REMARK, AFTER_COMPLAINT or AFTER_ERROR lines. A line of a
launcher or scheduler that says that a job is over (level `fatal`) cannot be overcome.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from provision.explain.known import LEVELS, Known, KnownFailure

if TYPE_CHECKING:
    from provision.explain.tracebacks import Traceback

AFTER_PREAMBLE = 15
WENT_ON, WENT_ON_AFTER_TRACEBACK = 2, 20
AFTER_REMARK, AFTER_COMPLAINT, AFTER_ERROR = 4, 40, 200
DIRECTLY = 3
NEAR_END, AT_END = 50, 5
"""A sign of success in the last so many lines shows that the log is whole, and so does the last epoch, or an epilog."""
SURENESS = {"cause": "likely", "error": "likely", "repeated": "likely", "complaint": "likely", "wait": "likely"}
IMPORTS = ("ModuleNotFoundError", "ImportError")
EXCEPTION = re.compile(r"(?:[A-Za-z_]\w{0,80}\.){0,9}[A-Z]\w{0,80}(?:Error|Exception)\b")
# What a name from a log may consist of to stand in a command: nothing that a shell interprets.
PASTED = re.compile(r"[\w./+@=,:%~^ -]*")
# The parts of a hint: commands, and what stands between them.
PARTS = re.compile(r"`[^`]*`?|[^`]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFailure:
    """A failure that a log shows, with its deciding line."""

    entry: KnownFailure
    number: int
    text: str
    level: str
    """That of its entry, or a weaker one for what the line says else."""
    values: dict[str, str] = field(default_factory=dict)
    place: str = ""
    """The place in the user's program, if a traceback names it."""
    specific: int = 0
    """How much of the line the pattern required."""
    status: bool = False
    """Whether a program only reports what it did not find: this counts only if the log shows a failure as well."""
    words: tuple[tuple[int, str], ...] = ()
    """The last words of the program above the line, if the line shows only what followed from a failure."""
    alone: bool = True
    """Whether no other entry calls the same line a cause."""

    @property
    def strength(self) -> int:
        """How much it says, by its level."""
        return LEVELS[self.level]

    @property
    def cause(self) -> str:
        """The cause, with the names that the deciding line contains."""
        return _insert(self.entry.cause, self.values)

    @property
    def hint(self) -> str:
        """The fix, with the names that the deciding line contains; in a command only if they can be pasted into a shell."""
        pasted = {
            name: value if PASTED.fullmatch(value) else name.upper()
            for name, value in self.values.items()
            if name != "text"
        }
        parts = PARTS.findall(self.entry.hint)
        return "".join(_insert(part, pasted if part.startswith("`") else self.values) for part in parts)

    @property
    def sureness(self) -> str:
        """`sure`, `likely` or `guess`."""
        return "sure" if self.level == "cause" and self.alone else SURENESS.get(self.level, "guess")

    def weaker(self, level: str) -> FoundFailure:
        """This finding with at most this level."""
        return replace(self, level=level) if LEVELS[level] < self.strength else self


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What a log shows."""

    verdict: str
    """`known`, `unknown` (it failed, and no entry says why) or `healthy`."""
    findings: tuple[FoundFailure, ...]
    """The causes, the likeliest first; of an unknown failure, what followed from it; of a healthy log, the lines that look
    worse than they are."""
    lines: tuple[tuple[int, str], ...]
    """The number and text of lines that look like errors, or of the last lines if none does."""
    is_text: bool
    length: int
    """The number of lines."""
    begins: int = 1
    """The line with which the run begins that it is about: other runs wrote to the log before it."""
    last_only: bool = False
    """Whether `lines` are the last ones, because none looks like an error."""
    ended: bool = False
    """Whether the last lines say that something ended well."""
    whole: bool = False
    """Whether the last lines are those with which programs and jobs end, well or not."""
    trained: bool = False
    """Whether it has many lines of a training."""

    @property
    def known(self) -> FoundFailure | None:
        """The likeliest cause, if it is known."""
        return self.findings[0] if self.verdict == "known" else None

    @property
    def cause(self) -> str | None:
        """The likeliest cause in words."""
        return self.known.cause if self.known else None

    @property
    def hint(self) -> str | None:
        """The fix of the likeliest cause."""
        return self.known.hint if self.known else None

    @property
    def evidence(self) -> tuple[str, ...]:
        """The text of the lines that look like errors."""
        return tuple(line for _, line in self.lines)


@dataclass(slots=True, kw_only=True)
class Evidence:
    """What a reader noted up to the end of a log, or of one of its runs."""

    known: Known
    hide: Callable[[str], str]
    findings: list[FoundFailure] = field(default_factory=list)
    tracebacks: list[Traceback] = field(default_factory=list)
    errors: dict[str, tuple[int, int]] = field(default_factory=dict)
    """The number and strength of each line that looks like an error."""
    last: tuple[tuple[int, str], ...] = ()
    words: tuple[tuple[int, str], ...] = ()
    """The last words of the log, if it ends with a complaint."""
    length: int = 0
    failed_at: int = 0
    success_at: int = 0
    whole_at: int = 0
    steps: int = 0
    """The number of lines of a training that goes on."""
    went_on: int = 0
    """How many of them are below the last failure."""
    well: bool = False
    installed: bool = False
    fatal: bool = False
    dead: set[str] = field(default_factory=set)
    """The ranks that ended with a traceback and printed nothing of a training since."""
    is_text: bool = True


MOST_LINES = 8


def conclude(evidence: Evidence, *, failed: bool = False) -> Explanation:
    """What a log shows that was read to its end; `failed` if it is known that the program failed."""
    findings = rank([*best_of_each(evidence), *quoted(evidence)])
    waits = any(found.level == "wait" and found.number == evidence.last[-1][0] for found in findings if evidence.last)
    causes = [found for found in findings if found.strength and (waits or found.level != "wait")]
    if not failed and all(found.status for found in causes):
        causes = []
    notices = [found for found in findings if found not in causes or found.level in ("complaint", "remark")]
    verdict = "known"
    shows = causes or evidence.tracebacks
    if not failed and not waits and (not shows or _overcome(evidence, causes)):
        verdict = "healthy"
    elif not causes or causes[0].level == "consequence":
        words = next((found.words for found in sorted(causes, key=lambda found: found.number) if found.words), ())
        if words := words or (evidence.words if not causes else ()):
            causes.insert(0, last_words(evidence, words))
        verdict = "known" if words else "unknown"
    if verdict == "healthy" and evidence.words and not evidence.success_at and not evidence.steps:
        verdict, causes = "known", [last_words(evidence, evidence.words)]
    lines = _lines(evidence, causes[:1] if verdict == "known" else [])
    return Explanation(
        verdict=verdict,
        findings=tuple(notices if verdict == "healthy" else causes),
        lines=lines or evidence.last[-MOST_LINES:],
        last_only=not lines,
        is_text=evidence.is_text,
        length=evidence.length,
        trained=evidence.steps >= WENT_ON_AFTER_TRACEBACK,
        ended=(evidence.well or evidence.installed) and evidence.success_at > evidence.length - NEAR_END,
        whole=evidence.whole_at > max(0, evidence.length - AT_END),
    )


def rank(findings: list[FoundFailure]) -> list[FoundFailure]:
    """The findings, the likeliest first."""
    firm = [found.number for found in findings if found.level in ("cause", "error", "symptom", "report")]
    first, last = min(firm, default=0), max(firm, default=0)
    ends = min((found.number for found in findings if found.entry.id in ENDS), default=0)
    raised = [found.number for found in findings if EXCEPTION.match(found.text) and found.strength >= LEVELS["symptom"]]

    def judge(found: FoundFailure) -> FoundFailure:
        if found.level == "complaint" and 0 < first < found.number and not found.values.get("path", "").startswith("/"):
            return found.weaker("report")
        if found.entry.id == "time-limit" and any(0 < found.number - at <= DIRECTLY for at in raised):
            return found.weaker("symptom")
        if found.level in ("complaint", "remark") and last - found.number > AFTER_PREAMBLE:
            return found.weaker("consequence")
        if 0 < ends < found.number and found.level != "cause" and found.entry.id not in ENDS:
            return found.weaker("consequence")
        return found

    return sorted(map(judge, findings), key=lambda found: (-found.strength, found.number, -found.specific))


ENDS = ("time-limit", "preempted", "node-failed", "job-cancelled", "job-exceeded-limit", "local-disk-limit")
"""The entries with which a scheduler ends a job."""


def best_of_each(evidence: Evidence) -> Iterable[FoundFailure]:
    """Each failure once, with its best line: the strongest, then the first."""
    handled = {one.after.number: one for one in evidence.tracebacks if one.after and one.handled}
    causes = Counter(
        number for number, _ in {(one.number, one.entry.id) for one in evidence.findings if one.level == "cause"}
    )
    places = {one.number: str(one.own_frame) for one in evidence.tracebacks if one.own_frame}
    best: dict[tuple[str, bool], FoundFailure] = {}
    for found in evidence.findings:
        if found.number in handled:  # the program tried another module, or the system refused what it then tried
            if "[Errno " in handled[found.number].text:
                found = found.weaker("remark")
            elif any(name in found.text for name in IMPORTS):
                found = found.weaker("symptom")
        key = found.entry.id, found.strength > 0
        if key not in best or (-found.strength, found.number) < (-best[key].strength, best[key].number):
            best[key] = replace(found, place=places.get(found.number, ""), alone=causes[found.number] <= 1)
    return best.values()


def quoted(evidence: Evidence) -> Iterable[FoundFailure]:
    """What the tracebacks show that no entry explains."""
    explained = {
        found.number
        for found in evidence.findings
        if found.strength >= LEVELS["symptom"] or found.level == "consequence"
    }
    followed = {one.after.number for one in evidence.tracebacks if one.after}
    causes = set()
    if not evidence.tracebacks:
        return
    from provision.explain.blame import blame  # its patterns are only for tracebacks

    for one in evidence.tracebacks:
        if one.number in explained or (one.number in followed and not one.after):
            continue
        blamed = blame(one) or (blame(one.after) if one.after else None)
        if blamed and (blamed[0], blamed[2]["text"]) not in causes:
            name, level, values = blamed
            causes.add((name, values["text"]))
            entry = evidence.known.entry(name)
            yield FoundFailure(
                entry=entry,
                number=one.number,
                text=evidence.hide(one.raw.strip())[:300],
                level=level or entry.level,
                values={key: evidence.hide(value) for key, value in values.items()},
            )


def last_words(evidence: Evidence, words: tuple[tuple[int, str], ...]) -> FoundFailure:
    """The last words of a program as a finding."""
    text = evidence.hide("; ".join(raw.strip("> \t*|!#") for _, raw in words))[:300]
    entry = evidence.known.entry("last-words")
    number, raw = words[-1]
    return FoundFailure(
        entry=entry, number=number, text=evidence.hide(raw)[:300], level=entry.level, values={"text": text}
    )


def _overcome(evidence: Evidence, causes: list[FoundFailure]) -> bool:
    """Whether what the log shows after its last failure excuses all failures."""
    if evidence.fatal or evidence.dead - {""}:
        return False
    died = any(one.frames for one in evidence.tracebacks)
    if evidence.well or evidence.went_on >= (WENT_ON_AFTER_TRACEBACK if died else WENT_ON):
        return True
    if evidence.installed and not any(one.own_frame for one in evidence.tracebacks):
        return not any(EXCEPTION.match(found.text) and found.strength >= LEVELS["complaint"] for found in causes)
    after = evidence.length - evidence.failed_at
    weak = {"remark": AFTER_REMARK, "complaint": AFTER_COMPLAINT, "error": AFTER_ERROR, "report": AFTER_ERROR}
    return not died and all(after > weak.get(found.level, after) for found in causes)


def _lines(evidence: Evidence, causes: list[FoundFailure]) -> tuple[tuple[int, str], ...]:
    """The deciding line, the end of the first traceback, and the lines that look most like errors, in the order of the log."""
    shown = {found.number: found.text for found in causes}
    for one in evidence.tracebacks[:1]:
        shown.setdefault(one.number, evidence.hide(one.raw.strip())[:300])
    likely = sorted(evidence.errors.items(), key=lambda item: (-item[1][1], item[1][0]))
    texts = set(shown.values())
    chosen = sorted((number, text) for text, (number, _) in likely[: MOST_LINES - len(shown)] if text not in texts)
    return (*shown.items(), *(pair for pair in chosen if pair[0] not in shown))


def _insert(sentence: str, values: dict[str, str]) -> str:
    """A sentence with the names that a log contains."""
    return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], "…"), sentence)
