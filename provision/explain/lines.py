"""One line of a log: what launchers and clocks put before it, and how serious it says that it is."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count

# What launchers print before each line of a rank. Sources: Open MPI's --tag-output, `srun --label`, Hydra's --prepend-rank,
# torchrun, Ray, pdsh, Docker Compose, BuildKit.
RANK = re.compile(
    r"\s?(?:\[\d+,\d+\](?:\[[^\]]{0,99}\])?(?:<std(?:out|err|diag)>)?:?\s?|"
    r"\[\d+\](?:<std(?:out|err)>:?\s?|:?\s)|\s{0,8}\d{1,6}: |\d{1,6}:(?=(?:ERROR|FATAL|ABORT): )|Proc(?:ess)? \d{1,6}: |"
    r"\[rank\d+\]:?\s?|\(\w{1,99} (?:pid=)?\d+[^)\n]{0,99}\)\s|(?![CDEINTW] )[\w.-]{1,64} {1,9}\| |#\d{1,4} \d{1,6}\.\d{1,3} )"
)
# What clocks print before each line, and Spack before those of its excerpts of a log: ISO 8601, syslog, the kernel, gRPC.
CLOCK = re.compile(
    r"\s{0,4}\[?(?:(?:\d{4}-\d\d-\d\d|\d{2,4}/\d\d/\d\d|\d\d/\d\d/\d{4})[T ])?\d\d:\d\d:\d\d(?:[.,:]\d{1,9})?"
    r"(?:Z|[+-]\d\d:?\d\d)?\]?(?: UTC)?:?\s?|\[ {0,6}\d{1,8}\.\d{6}\] |\s{0,12}\| (?=\[rank\d)|\s{0,4}>> \d{1,9} {2,9}|"
    r" {2,8}\d{1,6} {4}(?=[^\s\d])|"
    r"\w{3} {1,2}(?:\w{3} {1,2})?\d{1,2} \d\d:\d\d:\d\d(?:\.\d{1,6})?(?: (?:[CEMP][SD]T|CES?T|UTC|GMT|JST))?(?: \d{4})?"
    r"(?: [\w.-]{1,64} [\w./-]{1,64}(?:\[\d{1,8}\])?:)?\s?|\[?\d{4}-\d\d-\d\d\]?\s|"
    r"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{1,9} +\d{1,20} [\w./-]{1,80}:\d{1,6}\] (?=[IWEF]\d{4} \d\d:)"
)
# What colours a line or moves the cursor of a terminal, whatever its length.
ANSI = re.compile(rb"\x1b(?:\[[0-9;?!]{0,32}[A-Za-z]|[\]P][^\x07\x1b\n]{0,4096}(?:\x07|\x1b\\)?|[()][A-Za-z0-9]|.)")
# What was typed, or the code of a program, is not what happened: `set -x`, the code of IPython's tracebacks, pip's program.
# A row of squeue, which begins with a number too, ends with a reason.
CODE = re.compile(
    r"\++ |\+[\w./()-]{1,200}:\d+> |> #|\s{0,99}-{2,5}> ?\d+ |\s{1,9}\d{1,5}  +\S(?!.{0,200} \d+ \([A-Z]\w{3,60}\)$)|"
    r"\s{0,99}\d+ \| (?!#\s*error\b)|\$ |>>> |\s{4,99}raise \w|\s{4,99}(?:print|throw|echo)\b|In \[\d+\]:|Extension modules: "
)

INFO, STATUS, WARNING, ERROR = "info", "status", "warning", "error"
# How loggers name the level: TensorFlow (`I file.cc:5]`, `W0000 00:00:…`), Jupyter (`[I 2019-09-20 …`), services in Go.
TENSORFLOW = re.compile(r"([IWEF])(?:\d{4} \d| \S{1,200}:\d)|\[([DIWEC]) (?:\d{4}-|\d\d:)|\[([IWD])\] |([IDNTW]) \| ")
FAILED_OPERATION = re.compile(
    r"OP_REQUIRES failed|W \S{1,200}/op_kernel\.cc:\d+\] (?:Invalid arg|Not found|Data loss|Failed prec|Resource exh|Internal)"
)
LOGFMT = re.compile(r"(?:\w{1,20}=(?:\"[^\"]{0,200}\"|\S{1,99}) ){0,4}(?:level|lvl)=\"?(debug|info|notice|trace|warn)")
WARNS = re.compile(
    r"^\W{0,9}(?:[\w.]{1,99}:\s?)?(?:WARNING|WARN|Warning|warning)\b|\b(?:WARNING|Warning|warning):|"
    r"\[(?:WARN|WARNING|warning|warn)\]|\s-?\s?WARNING\s?[\]:-]|\b[A-Z]\w{1,60}Warning\b|^CMake (?:Deprecation )?Warning|"
    r"\bUCX +(?:WARN|DIAG)\b"
)
INFORMS = re.compile(
    r"\bNCCL (?:INFO|TRACE)\b|^\W{0,4}(?:DEBUG|INFO|TRACE|NOTE|Note(?=:)|STATUS)\b|\s-?\s?(?:INFO|DEBUG)\s?[\]:-]|"
    r'"level":"(?:INFO|DEBUG|TRACE)"|(?:^|\bslurm\w{0,10}: )debug\d?: |\blibfabric:\d+:.{1,99}?<(?:info|debug|trace)>'
)
# An error that was measured, as `RMS Error: 0.125 eV per atom` and `ERROR = 1.2e-5`; or the file with the errors, in a report.
MEASURED = re.compile(
    r"\W{0,9}(?:[\w.-]{1,20} ){0,4}(?i:errors?)(?: \(\w{1,9}\)| (?:at|in|on) [\w ]{1,20})?\"? {0,20}(?:=>|[:=])\s{0,20}"
    r"[\[(<~]{0,3}[-+]?(?:\d*\.\d+(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|\d+ ?%)|"
    r"\W{0,9}(?:[Ee]rror|[Ss]td[Ee]rr|STDERR) ?(?:[Ll]og|[Ff]ile|[Pp]ath|[Oo]utput)?s? ?[:=] {0,40}[\w.~$]{0,40}/\S{1,300}\s*$"
)
# The title of a change in Git, and a call of the system that failed, as strace lists it: most are looked for elsewhere.
LISTED = re.compile(
    r"(?:HEAD is now at |[*|\\/ ]{1,12})?(?=[0-9a-f]{0,11}\d)(?=\d{0,11}[a-f])[0-9a-f]{7,12} (?:\([^()]{1,99}\) )?[A-Za-z]|"
    r"(?:\[pid +\d+\] |\d+ +)?(?:[\d:.]+ )?\w{3,20}\(.{0,600}\) += -1 E[A-Z]{3,12} \("
)
FAILS = re.compile(r"\W{0,4}(?:FATAL|CRITICAL|ERROR): |sbatch: error: Batch job")
# Lines that begin so report what was found and what not; `/etc/…` is a script of the site, which complains and goes on.
STATUSES = ("-- ", "CUDA_TOOLKIT_ROOT_DIR not")
OF_SITE = ("/etc/", "debconf: ")
CMAKE_FAILS = "Configuring incomplete"

# Longer lines are read in parts, which overlap so that each message is whole in one of them.
WINDOW, OVERLAP = 8192, 512
# A line of this length that begins like JSON is data, such as the report of an inspection. A log in JSON has shorter lines.
DATA, LONG = (b'{"', b'[{"'), 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a log, without what was put before it."""

    number: int
    raw: str
    """The line as a person sees it, without colours."""
    text: str
    """The line without rank and time."""
    rank: str
    """What was put before it to name the rank; empty if nothing was."""


def read_line(number: int, raw: str) -> Line:
    """Take off what launchers and clocks put before a line."""
    text, rank = raw, ""
    for _ in range(3):
        if found := RANK.match(text):
            rank, text = rank or re.sub(r"<std\w+>:?|:$", "", found[0].strip()), text[found.end() :]
        elif (found := CLOCK.match(text)) and (found.end() < len(text) or ":" in text):
            text = text[found.end() :]
        else:
            break
    return Line(number=number, raw=raw, text=text, rank=rank)


def read_text(line: bytes) -> str:
    """The text of a line."""
    return line.decode("utf-8", "replace").rstrip()


def severity(text: str) -> str:
    """How serious the beginning of a line says that the line is; an error, if it says nothing else."""
    if found := TENSORFLOW.match(text):
        if FAILED_OPERATION.search(text):
            return ERROR  # TensorFlow calls it a warning, but the operation failed
        letter = next(filter(None, found.groups()))
        return {"W": WARNING, "E": ERROR, "F": ERROR, "C": ERROR}.get(letter, INFO)
    if "l=" in text and (found := LOGFMT.match(text)):
        return WARNING if found[1] == "warn" else INFO
    if text.startswith(STATUSES):
        return ERROR if CMAKE_FAILS in text else STATUS
    if text.startswith(OF_SITE):
        return WARNING
    start = text[:160]
    lowered = start.lower()
    if "err" in lowered and MEASURED.match(start):
        return INFO
    if FAILS.match(start):
        return ERROR
    if LISTED.match(text):
        return INFO
    if ("warn" in lowered or "UCX" in start) and WARNS.search(start):
        return WARNING
    return INFO if INFORMS.search(start) else ERROR


def is_code(text: str) -> bool:
    """Whether a line shows a command or a program's code."""
    return CODE.match(text) is not None


def split_parts(line: bytes) -> Iterable[bytes]:
    """The parts of a line that a progress bar writes over each other, none longer than WINDOW; of data none."""
    if len(line) > LONG and line.lstrip().startswith(DATA):
        return
    for part in line.split(b"\r"):
        if len(part) <= WINDOW:
            yield part
        else:
            for start in count(0, WINDOW - OVERLAP):
                if start >= len(part):
                    break
                piece = part[start : start + WINDOW]
                # A part begins between words, so that no half of a secret is shown.
                yield piece[piece.find(b" ", 0, OVERLAP) + 1 :] if start else piece
