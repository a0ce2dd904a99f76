"""What a program printed directly before a launcher, a scheduler or a build tool noticed that it had failed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice

from provision.knowledge.failures.catalogue import WEIGHTS, KnownFailure
from provision.knowledge.failures.health import shows_progress
from provision.knowledge.failures.lines import ERROR, is_code, is_excused, level, read_line
from provision.knowledge.failures.report_forms import follows
from provision.knowledge.failures.reported_errors import LONGEST, failure_in_words
from provision.knowledge.failures.words import line_words

# So many lines above the notice are looked at, and so many of the nearest paragraph are its last words.
MOST_ABOVE, MOST_LINES = 40, 3
# A sentence has so many words.
FEWEST_WORDS = 3
ID = "last-words"
# The border of a message of Open MPI or Hydra, and the frame of any message.
BORDER = re.compile(r"\W{0,9}[-=*]{20,}\W{0,9}$")
FRAME = re.compile(r"[\s>|*=#~_+-]*$")
# What is not said by the program: stacks of calls, launchers and schedulers, what was typed, and the steps of an installation.
FOREIGN = re.compile(
    r"\W{0,4}\[\S{1,80}:\d+\] (?:\[ ?\d+\]|\*\*\*)|#\d+ |\s*\[bt\]|\[(?:mpiexec|proxy)[@:]|"
    r"(?:srun|slurmstepd\S*|mpirun|sbatch):|-\[nf-core/|==> (?!Error)|\d{3} \(\d+\.\d+\.\d+\) |"
    r"\S{1,80} +[0-9A-Fa-f]{16} |\s*@ +0x[0-9a-f]{6,16} |[$%#+] ?\S|\w+@\S{1,80}[:$#]|\[\w+@[^\]]{1,80}\]|cat: |"
    r"\s*(?:File \"|at 0x|return |raise |warnings?\.warn\(|Collecting |Requirement already|Using cached|Downloading |"
    r"Building wheel|"
    r"Preparing metadata|Installing |Getting requirements|Running )|"
    r".*(?:\d%\||\b[A-Z]\w{1,40}Warning: |"
    r"did NOT complete|End of error message|\*\*\* \[|\.\.\. (?:done|ok|yes|no)$|\bterminated$|\berrors?[:.]?$|"
    r"Documentation/Errors$|Unknown error submitted to |more process(?:es)? ha(?:s|ve) sent help message|_base_help_aggregate\b)"
)
# What Slurm prints of the step and the ranks that it ends after the first one has ended.
ENDED = re.compile(
    r"srun: error: \S{1,200} tasks? [\d,-]+: (?:Killed|Terminated)\b|"
    r"slurmstepd\S{0,80}: (?:error: )?\*\*\* .{1,200} CANCELLED AT \S+ \*\*\*|srun: Force Terminated\b"
)
# A sentence that says that something is wrong has one of these words.
COMPLAINT = re.compile(
    r"\b(?:not|no|cannot|can't|couldn't|won't|unable|invalid|unknown|unrecogni[sz]ed|unexpected|illegal|missing|wrong|bad|"
    r"incorrect|"
    r"mismatch\w*|refused?|denied|exceed\w*|too (?:many|large|small|few|long|big|old|new)|must|should|quit\w*|abort\w*|"
    r"stopp\w+|terminat\w+|killed|errors?|fail\w*|fatal|expected|requires?|required|overflow|nan|negative|singular|"
    r"diverge\w*|corrupt\w*|"
    r"unsupported|lost|dead|died|crash\w*|exception|already|inconsistent|outside|beyond|insufficient|undefined|"
    r"unavailable|inaccessible|unprocessed|unhandled|uncaught|ill-(?:defined|conditioned|posed)|"
    r"giv(?:es?|ing) up|violat\w*|conflict\w*|problems?)\b",
    re.IGNORECASE,
)
# A line with one of these words at the end of a log is more than a remark.
REFUSES = re.compile(
    r"^(?:Unknown|Invalid|Missing|Undefined|Unrecognized|Ambiguous) \w+(?: \w+)?: \S|^Must (?:have|be|not|use)\b.{3,120}!?$|"
    r"^Package \S+(?: \([^)]+\))? not found\.?$|"
    r"\b(?:unknown|unrecogni[sz]ed|invalid|illegal|unsupported) (?:\w+ )?"
    r"(?:options?|keys?|keywords?|arguments?|parameters?|commands?|variables?|values?|inputs?|flags?|types?|names?|fields?)\b|"
    r"\b(?:aborting|giving up|malformed|incompatible|illegally|mutually exclusive|must be installed|"
    r"out of (?:range|bounds)|"
    r"is (?:invalid|illegal|too (?:many|few|large|small|long|short|old|new))|(?:can ?not|can't|could ?n[o']t|"
    r"unable to) (?:continue|proceed|"
    r"read|write|parse|run|start|stat|rename|remove|resolve|handle|process|map|set|get))\b",
    re.IGNORECASE,
)
# These programs print their name at the beginning of a line only if they complain; the shell prints the line of its script.
# Names that are also words, as in `test: …` and `tail: …`, need a word of a complaint behind them.
# Sources: GNU coreutils, tar, sed, grep, findutils, gzip, binutils, bash; PBS Professional and Torque, src/cmds.
COMPLAINERS = re.compile(
    r"(?:\S{1,200}: line \d+: |(?:/\S{0,200}/)?(?:cp|mv|ln|rm|mkdir|rmdir|chmod|chown|dd|readlink|realpath|mktemp|tar|gzip|"
    r"gunzip|unzip|bzip2|xz|zcat|sed|grep|egrep|gawk|xargs|ld|nm|objcopy|ssh|scp|taskset|numactl|umount|"
    r"q(?:sub|stat|del|alter|hold|rls|rerun|sig|select|move|mgr)|pbs_\w{2,20}): |"
    r"(?:/\S{0,200}/)?(?:touch|cat|df|du|stat|install|awk|find|sort|head|tail|cut|tee|test|ar|as|strip|env|nice|timeout|mount): "
    r"(?=.{0,200}\b(?:can ?not|can't|couldn't|could not|unable|invalid|illegal|unrecogni[sz]ed|unknown|malformed|"
    r"missing (?:operand|argument|file|destination)|extra operand|such file|denied|syntax|unexpected|bad \w|ambiguous|"
    r"expression expected|operator expected|expected an|too many|refus\w+|not a |must (?:be|not)|unterminated)\b))"
    r"(?!.{0,80}\b(?:creat(?:ed|ing) directory|[Rr]emoving leading|[Ww]arning|no such job|No such process))"
)
# `No malformed records in train.csv` is good news.
NONE = re.compile(r"\W{0,9}(?:no|none|0|zero|without)\b", re.IGNORECASE)


def is_refusal(text: str) -> bool:
    """Whether a line at the end of a log is more than a remark."""
    return COMPLAINERS.match(text) is not None or (REFUSES.search(text) is not None and not NONE.match(text))


def last_words(above: Iterable[tuple[int, str]]) -> tuple[tuple[int, str], ...]:
    """The paragraph nearest to a notice, of the lines above it, the nearest first; empty if it complains of nothing."""
    found: list[tuple[int, str]] = []
    borders = 0  # of the message that says that the program ended, and of others above it
    for number, raw in islice(above, MOST_ABOVE):
        line = read_line(number, raw).text
        text = line.strip()
        if FRAME.match(text):
            if found:
                break
            borders += BORDER.match(text) is not None
        elif borders > 1 and borders % 2 == 0:
            continue  # within another message of the launcher
        elif is_code(raw) or level(line) != ERROR or is_excused(text, line_words(text)) or shows_progress(text):
            break
        else:
            found.append((number, raw.strip()))
            if len(found) == MOST_LINES:
                break
    return tuple((number, raw) for number, raw in reversed(found) if _tells(read_line(0, raw).text))


def _tells(text: str) -> bool:
    """Whether a line says that something is wrong, and what."""
    if len(text.split()) < FEWEST_WORDS or not COMPLAINT.search(text):
        return False
    return not FOREIGN.match(text) and not follows(text)


def last_words_failure(words: tuple[tuple[int, str], ...]) -> KnownFailure:
    """What the last words of a program say, as a failure."""
    text = "; ".join(raw.strip("> \t*|!#") for _, raw in words)
    text = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
    return failure_in_words(
        f"a program ended with these last words: `{text}`",
        text,
        hint="the manual of the program may explain its words",
        name=ID,
        weight=WEIGHTS["report"],
    )
