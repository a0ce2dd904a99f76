"""Messages between two lines of dashes, as Open MPI, PRRTE and PMIx print them: what they say, and whether a program goes on."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from provision.knowledge.failures.lines import read_line
from provision.knowledge.failures.report_forms import follows

# Open MPI, PRRTE and PMIx print 74 dashes, and no message of them is longer than this many lines. Source: their `show_help`,
# and their files help-*.txt, from which the words below are.
BORDER, MOST_LINES = re.compile(r"-{60,90}$"), 60
# The same in the bytes of a line.
DASHES = b"-" * 60
# A message begins with a sentence, which has so many words; a table or a banner does not.
FEWEST_WORDS = 4
SENTENCE = re.compile(r"(?!.{0,80}\S {3,}\S)\W{0,3}(?:\[\S{1,80}\] )?[A-Z`'\"]|mpi\w+ |\w+run ")
# It says that its program goes on.
WARNS = re.compile(r"\W{0,9}(?:WARNING|Warning|NOTE)\b")
GOES_ON = re.compile(
    r"\b(?:will|may) (?:now )?(?:therefore )?(?:continue|proceed|skip|try to|attempt to|fall back|be ignored|be skipped|"
    r"be disabled)|"
    r"\b(?:is|are|was|were|been|therefore) (?:therefore )?ignored\b|\bignoring\b|\bfalling back\b|\bdefaulting to\b|"
    r"\bdeprecated\b|"
    r"\b(?:this|the) warning\b|\bperformance\b|\bno impact\b|\bsupport is disabled\b|\bsuppress this\b|"
    r"\battempted to remove a file\b",
    re.IGNORECASE,
)
# It says that its program ends, whatever else it says.
ENDS = re.compile(
    r"\b(?:abort(?:ed|ing)?|terminal error|unrecoverable|fatal error|(?:unable|not able) to (?:continue|proceed)|(?:can|"
    r"could) ?not (?:continue|proceed)|"
    r"will be terminated|is being terminated)\b",
    re.IGNORECASE,
)
# It says that something is wrong.
COMPLAINS = re.compile(
    r"\b(?:fail(?:s|ed|ure)?|unable|could not|couldn't|cannot|can ?not|can't|invalid|illegal|errors?|unexpected(?:ly)?|"
    r"erroneous|unknown|"
    r"unrecogni[sz]ed|refused|denied|missing|mismatch(?:ed)?|conflict(?:s|ing)?|contradictory|exceed(?:s|ed)?|lost|died|"
    r"dead|unreachable|"
    r"incorrect|inconsistent|insufficient|malformed|ambiguous|corrupt(?:ed)?|unsupported|disallowed|undefined|non-?existent|"
    r"improperly|"
    r"not (?:\w+ )?(?:supported|found|available|allowed|valid|possible|enough|exist|able|recogni[sz]ed|executable|permitted|"
    r"specified|"
    r"given|correct|compatible|understood|known|match|contain|have|meet|fit|compiled|present|provided|a )|"
    r"no (?:\w+ ){0,3}(?:found|available|specified|given|reachable|components?)|too (?:many|few|small|large|low|high|big|long)|"
    r"neither|out of (?:range|bounds?|memory|resources)|(?:more|bigger|larger|less) than|timed? ?out|must be|"
    r"was invoked (?:before|after|"
    r"multiple times)|(?:does|did|do|would) not|rejected|only one (?:of|can)|beyond|deadlock|never|doesn't|"
    r"without \w+ support|"
    r"please (?:correct|check|review|specify|provide|adjust|verify|add|rebuild|report)|try again|none of)\b",
    re.IGNORECASE,
)
# Words of the programs that print such messages.
OPEN_MPI = re.compile(
    r"\b(?:Open ?MPI|MPI|MPI_\w+|PMIx|PRRTE|PRTE|ORTE|OMPI|mpirun|prterun|MCA|slots?|rank(?:s|file)?|process(?:es)?|daemons?)\b"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A message between two lines of dashes that says that something is wrong."""

    first: int
    """The number of its first line."""
    raw: str
    """The first line."""
    text: str
    goes_on: bool
    ends: bool
    """Whether it says that the program ends."""

    @property
    def program(self) -> str:
        """Who prints it; empty if it could be anything."""
        return "Open MPI" if OPEN_MPI.search(self.text) else ""


def is_border(text: str) -> bool:
    """Whether a line is the border of such a message."""
    return BORDER.match(text.strip()) is not None


def read_box(rank: str, above: Iterable[tuple[int, str]], closed: int) -> Box | None:
    """The message above a line of dashes of this rank, if it is one.

    `above` are the lines above it, the nearest first; `closed` is the number of the last line of dashes that ended a message:
    what is below it is between two messages.
    """
    lines: list[tuple[int, str]] = []
    for number, raw in above:
        line = read_line(number, raw)
        if line.rank != rank:
            continue
        text = line.text.strip()
        if is_border(text):
            return _read_message(lines[::-1]) if number != closed else None
        if text:
            lines.append((number, text))
        if len(lines) > MOST_LINES:
            break
    return None


def _read_message(lines: list[tuple[int, str]]) -> Box | None:
    """What the lines between two borders say, if they are sentences that complain."""
    if not lines or not SENTENCE.match(lines[0][1]) or max(len(text.split()) for _, text in lines) < FEWEST_WORDS:
        return None
    text = " ".join(text for _, text in lines)
    if len(lines) == 1 and follows(text):
        return None
    warns, ends = WARNS.match(text) is not None, ENDS.search(text) is not None
    goes_on = warns or (GOES_ON.search(text) is not None and not ends)
    if not goes_on and not ends and not COMPLAINS.search(text):
        return None
    return Box(first=lines[0][0], raw=lines[0][1], text=text, goes_on=goes_on, ends=ends)
