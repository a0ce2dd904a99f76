"""What a program printed directly before a launcher, a scheduler or a build tool noticed that it had failed."""

from __future__ import annotations

import re
from collections.abc import Iterable

from provision.explain.known import Known
from provision.explain.lines import ERROR, is_code, read_line, severity

FEWEST_WORDS = 4
"""A sentence has so many words."""
# A sentence that says that something is wrong has one of these words.
COMPLAINS = re.compile(
    r"\b(?:not|no|cannot|can't|couldn't|unable|invalid|unknown|unrecogni[sz]ed|unexpected|illegal|missing|wrong|bad|incorrect|"
    r"mismatch\w*|refused?|denied|exceed\w*|too (?:many|large|small|few|long|big|old|new)|must|abort\w*|stopp\w+|terminat\w+|"
    r"killed|errors?|fail\w*|fatal|expected|required?s?|overflow|nan|negative|singular|diverge\w*|corrupt\w*|unsupported|lost|"
    r"dead|died|crash\w*|exception|already|inconsistent|erroneous|outside|insufficient|undefined|unavailable|unhandled|uncaught|"
    r"giv(?:es?|ing) up|violat\w*|conflict\w*|problems?)\b",
    re.IGNORECASE,
)
# Last words are sought in so many lines above a consequence, and are at most so many; these lines are of others.
MOST_ABOVE, MOST_WORDS = 40, 3
FOREIGN = re.compile(
    r"\W{0,4}\[\S{1,80}:\d+\] (?:\[ ?\d+\]|\*\*\*)|#\d+ |\[(?:mpiexec|proxy)[@:]|(?:srun|slurmstepd\S*|mpirun|sbatch):|"
    r"[$%#+] ?\S|\w+@\S{1,80}[:$#]|\s*(?:File \"|return |raise |Collecting |Requirement already|Using cached|Downloading |"
    r"Building wheel|"
    r"Installing |Running )|.*(?:\d%\||\b[A-Z]\w{1,40}Warning: |End of error message|\.\.\. (?:done|ok|yes|no)$|"
    r"more process(?:es)? ha(?:s|ve) sent help message)"
)
# A line at the end of a log that is more than a remark; `No malformed records` is good news.
NONE = re.compile(r"\W{0,9}(?:no|none|0|zero|without)\b", re.IGNORECASE)
REFUSES = re.compile(
    r"^(?:Unknown|Invalid|Missing|Undefined|Unrecognized|Ambiguous) \w+(?: \w+)?: \S|\b(?:unknown|unrecogni[sz]ed|invalid|"
    r"illegal|unsupported) (?:\w+ )?(?:options?|keys?|keywords?|arguments?|parameters?|commands?|variables?|values?|flags?|"
    r"types?)\b|"
    r"\b(?:aborting|giving up|malformed|incompatible|mutually exclusive|must be installed|is (?:invalid|illegal)|"
    r"(?:can ?not|can't|unable to) (?:continue|proceed|read|write|parse|run|start|resolve|handle|process|get))\b",
    re.IGNORECASE,
)


def last_words(known: Known, above: Iterable[tuple[int, str]]) -> tuple[tuple[int, str], ...]:
    """The paragraph nearest to a notice, of the lines above it, the nearest first; empty if it complains of nothing."""
    found: list[tuple[int, str]] = []
    for number, raw in above:
        text = read_line(0, raw).text.strip()
        if not text.strip("|*=#~_+->"):
            if found:
                break
        elif is_code(raw) or severity(text) != ERROR or says(known, text, "excuse", "progress", "success", "end"):
            break
        else:
            found.append((number, raw.strip()))
            if len(found) == MOST_WORDS:
                break
    complaints = [pair for pair in found if _complains(known, read_line(0, pair[1]).text)]
    return tuple(reversed(complaints))


def _complains(known: Known, text: str) -> bool:
    """Whether a line says that something is wrong, and what."""
    if len(text.split()) < FEWEST_WORDS - 1 or not COMPLAINS.search(text) or FOREIGN.match(text):
        return False
    return not says(known, text, "consequence", "notice")


def says(known: Known, text: str, *levels: str) -> bool:
    """Whether an entry of one of these levels matches a text."""
    return any(entry.level in levels for _, entry, _ in known.matches(text))


def only_failed(known: Known, text: str) -> bool:
    """Whether a message says no more than that something failed, in words that all programs use."""
    return any(entry.level == "consequence" and entry.quotes for _, entry, _ in known.matches(text))


def is_refusal(text: str) -> bool:
    """Whether a line at the end of a log is more than a remark."""
    return REFUSES.search(text) is not None and not NONE.match(text)
