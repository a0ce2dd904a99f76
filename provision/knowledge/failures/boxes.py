"""Messages between two lines of dashes, as Open MPI, PRRTE and PMIx print them: what they say, and whether a program goes on."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from provision.knowledge.failures.lines import Line, read_line
from provision.knowledge.failures.report_forms import follows

# Open MPI, PRRTE and PMIx print 74 dashes, some parts of Open MPI 60; other programs print other numbers: HPL 80, STREAM 61.
# Source: their `show_help`, and their files help-*.txt, from which the words below are.
EDGE = re.compile(r"-{60}$|-{74,76}$")
# The same in the bytes of a line.
DASHES = b"-" * 60
# So many ranks are remembered; a message has at most so many lines, with those of other ranks between them.
MOST_RANKS, MOST_LINES = 256, 80
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
    r"\b(?:this|the) warning\b|\b(?:reduc|degrad|lower|impact|affect|hurt|decreas|limit|poor|suboptimal|slow)\w* "
    r"(?:\w+ ){0,4}performance\b|\bperformance (?:degradation|loss|penalty|(?:may|will|might|can|could) be)\b|"
    r"\bno impact\b|\bsupport is disabled\b|\bsuppress this\b|"
    # PMIx does without most of its parts; if not, it says more.
    r"\battempted to remove a file\b|\bPMIx stopped checking at the first component\b",
    re.IGNORECASE,
)
# It says that its program ends, whatever else it says.
SAYS_END = re.compile(
    r"\b(?:abort(?:ed|ing)?|terminal error|unrecoverable|fatal error|(?:unable|not able) to (?:continue|proceed)|(?:can|"
    r"could) ?not (?:continue|proceed)|"
    r"will be terminated|is being terminated|job (?:has )?failed|failed to start|cannot start|will not run)\b",
    re.IGNORECASE,
)
# It says that something is wrong.
SAYS_WRONG = re.compile(
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
    """A message between two lines of dashes."""

    lines: tuple[tuple[int, str], ...]
    """The number and text of each line that is not empty."""
    text: str

    @property
    def first(self) -> int:
        """The number of its first line."""
        return self.lines[0][0]

    @property
    def numbers(self) -> frozenset[int]:
        """The numbers of its lines: those of other ranks may stand between them."""
        return frozenset(number for number, _ in self.lines)

    @property
    def goes_on(self) -> bool:
        """Whether it says that its program goes on."""
        return WARNS.match(self.text) is not None or (GOES_ON.search(self.text) is not None and not self.ends)

    @property
    def ends(self) -> bool:
        """Whether it says that its program ends."""
        return SAYS_END.search(self.text) is not None

    @property
    def complains(self) -> bool:
        """Whether it says that something is wrong, and what."""
        if len(self.lines) == 1 and follows(self.text):
            return False
        return self.ends or SAYS_WRONG.search(self.text) is not None

    @property
    def program(self) -> str:
        """Who prints it; empty if it could be anything, such as a banner of the site or a table of results."""
        return "Open MPI" if OPEN_MPI.search(self.text) else ""


class BoxReader:
    """Finds the messages of each rank, from the lines of dashes."""

    def __init__(self) -> None:
        self._opened: dict[str, int] = {}
        """The line of dashes that may begin a message, by rank."""

    def close(self, line: Line, above: Iterable[tuple[int, str]]) -> Box | None:
        """The message that this line of dashes ends; a line that ends one does not begin another.

        `above` are the lines above it, the nearest first, as far as they are kept.
        """
        if not EDGE.match(line.text.strip()):
            return None
        opened = self._opened.pop(line.rank, -MOST_LINES)
        lines = _lines_between(line, opened, above) if 1 < line.number - opened <= MOST_LINES else []
        if lines and SENTENCE.match(lines[0][1]) and max(len(text.split()) for _, text in lines) >= FEWEST_WORDS:
            return Box(lines=tuple(lines), text=" ".join(text for _, text in lines))
        if len(self._opened) >= MOST_RANKS:
            self._opened.clear()
        self._opened[line.rank] = line.number
        return None


def _lines_between(line: Line, opened: int, above: Iterable[tuple[int, str]]) -> list[tuple[int, str]]:
    """The lines of the same rank between two lines of dashes; none if the first is not among those above."""
    lines: list[tuple[int, str]] = []
    for number, raw in above:
        if number <= opened:
            return lines[::-1]
        if line.rank not in raw:
            continue
        other = read_line(number, raw)
        if other.rank == line.rank and (text := other.text.strip()):
            lines.append((number, text))
    return []
