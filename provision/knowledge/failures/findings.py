"""What a log shows: the lines that match known failures, and the conclusion from them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from provision.knowledge.failures.catalogue import WEIGHTS, KnownFailure
from provision.knowledge.failures.crash_frames import advice

# So many lines at most are between the end of a program and what its scheduler says at once.
NEAR = 2
# So many lines at most belong to a line that announces them.
ANNOUNCED = 8
CMAKE = re.compile(r"\s{0,8}CMake Error at ")
NOT_FOUND = re.compile(r"\s{0,4}(?:-- )?Could NOT find ")
# An error that does not name what is missing.
POINTS_ABOVE = re.compile(
    r"\bmissing: \w+_FOUND\)|\bsee (?:the )?(?:\w+ )?above|\b(?:needed|required|necessary) (?:package|librar\w+|dependenc\w+)s? "
)
# What a name from a log may consist of to stand in a command: nothing that a shell interprets.
PASTED = re.compile(r"[\w./+@=,:%~^ -]*")
# The parts of a hint: commands, and what stands between them.
PARTS = re.compile(r"`[^`]*`?|[^`]+")
# What a line is about: another one that names another such thing does not follow from it.
NAMES = ("package", "library")
EXCEPTION = re.compile(r"(?:[A-Za-z_]\w{0,80}\.){0,9}[A-Z]\w{0,80}(?:Error|Exception)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A line that shows a failure."""

    number: int
    text: str
    weight: int
    values: dict[str, str] = field(default_factory=dict)
    specific: int = 0
    """How much of the line the pattern required."""
    status: bool = False
    """Whether a program only reports what it did not find: this counts only if the log shows a failure as well."""
    above: tuple[tuple[int, str], ...] = ()
    """The last words of the program before the line, if the line shows only what followed from a failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A failure that a log shows, with its deciding line."""

    failure: KnownFailure
    hit: Hit
    quoted: bool = False
    """Whether it consists of the words with which a program ended."""
    says: str = ""
    """The lines that the deciding line announces, such as the end of MPICH's error stack."""

    @property
    def cause(self) -> str:
        """The cause, with the names that the deciding line contains."""
        cause = _insert(self.failure.cause, self.hit.values)
        if self.failure.crashes and "place" in self.hit.values:
            cause = f"{cause}; it was in {self.hit.values['place']}"
        return f"{cause}; it says: `{self.says}`" if self.says and not self.failure.elsewhere else cause

    @property
    def follows(self) -> bool:
        """Whether it shows only what followed from the failure."""
        return self.failure.elsewhere or self.hit.weight == WEIGHTS["consequence"]

    @property
    def hint(self) -> str:
        """The fix, with the names that the deciding line contains; in a command only if they can be pasted into a shell."""
        values = self.hit.values
        pasted = {name: value if PASTED.fullmatch(value) else name.upper() for name, value in values.items()}
        parts = PARTS.findall(self.failure.hint)
        hint = "".join(_insert(part, pasted if part.startswith("`") else values) for part in parts)
        return f"{advice(self.hit.values)}{hint}" if self.failure.crashes else hint

    @property
    def sureness(self) -> str:
        """`sure`, `likely` or `guess`."""
        return {WEIGHTS["cause"]: "sure", WEIGHTS["error"]: "likely"}.get(self.hit.weight, "guess")


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What a log shows."""

    verdict: str
    """`known`, `unknown` (it failed, and no entry of the catalogue says why) or `healthy`."""
    findings: tuple[Finding, ...]
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

    @property
    def known(self) -> Finding | None:
        """The likeliest cause, if it is known."""
        return self.findings[0] if self.verdict == "known" else None


def by_likelihood(found: Finding) -> tuple[int, bool, int, int]:
    """The strongest first, of these the first in the log, and of one line that which says most about it.

    A program's words come before those of one without which its script often goes on, and a crash before the ranks that
    the launcher may have ended after it.
    """
    may_wait = found.failure.goes_on or found.failure.may_follow
    waits = (may_wait and found.hit.weight == WEIGHTS["report"]) or found.failure.of_launcher
    return -found.hit.weight, waits, found.hit.number, -found.hit.specific


def give_way(findings: list[Finding]) -> list[Finding]:
    """The findings, the likeliest first; one that another finding explains, or shows to be harmless, counts less."""
    findings = _explain_others(findings)
    quoted = any(found.quoted for found in findings)
    first_reason = min((found.hit.number for found in findings if _says_why(found)), default=0)
    ends = min((found.hit.number for found in findings if found.failure.ends), default=0)
    # If the last words of a program are directly before the end of its job, the program had ended before it.
    had_ended = any(_says_an_end(found) and 0 < ends - found.hit.number <= NEAR for found in findings)

    # What CMake only reports as missing did not stop it, if an error of CMake says what did.
    stops = [found for found in findings if CMAKE.match(found.hit.text)]
    cmake = bool(stops) and not any(POINTS_ABOVE.search(found.cause) for found in stops)

    def gives_way(found: Finding) -> bool:
        behind_end = 0 < ends < found.hit.number and not found.failure.ends
        return (
            (found.failure.elsewhere and (quoted or 0 < first_reason < found.hit.number))
            or (found.failure.ends and had_ended)
            or (cmake and (found.hit.status or NOT_FOUND.match(found.hit.text) is not None))
            or (behind_end and not found.quoted and found.hit.weight < WEIGHTS["cause"])
        )

    findings = [
        _weaken(found, WEIGHTS["report"])
        if found.failure.may_follow and not _is_absolute(found) and any(_may_lead(first, found) for first in findings)
        else found
        for found in findings
    ]
    return sorted([_weaken(found) if gives_way(found) else found for found in findings], key=by_likelihood)


def _explain_others(findings: list[Finding]) -> list[Finding]:
    """The findings; one from which another one follows is as strong as that was."""
    for cause in [found for found in findings if found.failure.explains]:
        follow = [found for found in findings if _follows_from(found, cause)]
        if follow:
            strongest = max([cause, *follow], key=lambda found: found.hit.weight).hit.weight
            others = [found for found in findings if found is not cause and found not in follow]
            findings = [*others, replace(cause, hit=replace(cause.hit, weight=strongest)), *map(_weaken, follow)]
    return findings


def _follows_from(found: Finding, cause: Finding) -> bool:
    """Whether a failure follows from another one above it, as a relative path that a job does not find in the wrong folder."""
    below = found.hit.number > cause.hit.number
    explained = below and found.failure.id in cause.failure.explains and not _is_absolute(found)
    return explained and _name_the_same(found.hit.values, cause.hit.values)


def _name_the_same(values: dict[str, str], others: dict[str, str]) -> bool:
    """Whether two lines name the same package or library, if both name one; `six==1.16.0` is a `six`."""
    return all(values[name].startswith(others[name]) for name in NAMES if name in values and name in others)


def _is_absolute(found: Finding) -> bool:
    """Whether the deciding line names an absolute path: it does not depend on the working folder or an earlier step."""
    return any(value.startswith("/") for value in found.hit.values.values())


def _may_lead(first: Finding, found: Finding) -> bool:
    """Whether a finding may follow from another one above it: a program that handled that or did without something went on."""
    went_on = first.hit.weight < max(first.failure.weight, WEIGHTS["report"]) or first.failure.goes_on
    lines_below = found.hit.number - first.hit.number
    # A line that ends with a colon announces those below it.
    least = ANNOUNCED if first.hit.text.endswith(":") else 0
    return lines_below > least and not went_on and not first.failure.may_follow


def _says_an_end(found: Finding) -> bool:
    """Whether a finding is why a program ended: its last words, or an exception that nothing caught."""
    return found.quoted or (found.hit.weight >= WEIGHTS["error"] and EXCEPTION.match(found.hit.text) is not None)


def _says_why(found: Finding) -> bool:
    """Whether a finding is an error of its own that a program reports before it ends itself."""
    return found.failure.program and found.hit.weight == WEIGHTS["report"]


def _weaken(found: Finding, weight: int = WEIGHTS["consequence"]) -> Finding:
    """A finding that is only what follows from an error elsewhere, or that may."""
    return replace(found, hit=replace(found.hit, weight=min(found.hit.weight, weight)))


def _insert(sentence: str, values: dict[str, str]) -> str:
    """A sentence with the names that a log contains."""
    return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], "…"), sentence)
