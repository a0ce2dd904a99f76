"""One line of a log: what launchers, clocks and loggers put before it, how serious it is, and whether it "
"excuses itself."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from provision.knowledge.failures.words import word_set

# What launchers print before each line of a rank; and what clocks, and Spack's excerpts of a log, print before each.
# Sources: Open MPI's --tag-output and --timestamp-output, `srun --label`, Hydra's --prepend-rank, torchrun, Ray, pdsh, Docker
# Compose, BuildKit (`#19 9.900 `), Spack (`  >> 12    `), syslog, ISO 8601, GPAW (`rank=1 L44: `), OpenLDAP's slapd.
RANK = re.compile(
    r"\s?(?:\[\d+,\d+\](?:\[[^\]]{0,99}\])?(?:<std(?:out|err|diag)>)?:?\s?|"
    r"\[\d+\](?:<std(?:out|err)>:?\s?|:?\s)(?!Stack Traceback:)|\s{0,8}\d{1,6}: |"
    r"\d{1,6}:(?=(?:ERROR|FATAL|ABORT): )|Proc(?:ess)? \d{1,6}: |"
    r"\[rank\d+\]:?\s?|\(\w{1,99} (?:pid=)?\d+[^)\n]{0,99}\)\s|(?![CDEINTW] )[\w.-]{1,64} {1,9}\| |rank=\d{1,6} L\d{1,6}: ?|"
    r"#\d{1,4} \d{1,6}\.\d{1,3} |\[[A-Za-z][\w .-]{2,40}\] (?=(?:srun|slurmstepd|sbatch|mpirun): ))"
)
CLOCK = re.compile(
    r"\s{0,4}\[?(?:(?:\d{4}-\d\d-\d\d|\d{2,4}/\d\d/\d\d|\d\d/\d\d/\d{4})[T ])?\d\d:\d\d:\d\d(?:[.,:]\d{1,9})?(?:Z|"
    r"[+-]\d\d:?\d\d)?\]?(?: UTC)?:?\s?|"
    r"[0-9a-f]{8}\.[0-9a-f]{6,8} 0x[0-9a-f]{6,16} |"
    r"\[ {0,6}\d{1,8}\.\d{6}\] |\[ {1,6}\+\d{1,8}\.\d{6}\] |"  # the kernel, and Flux
    r"\[[A-Z][a-z]{2} ?\d{1,2} \d\d:\d\d\] |"
    r"\s{0,12}\| (?=\[rank\d)|"
    r"\s{0,4}>> \d{1,9} {2,9}| {2,8}\d{1,6} {4}(?=[^\s\d])|"
    r"\w{3} {1,2}(?:\w{3} {1,2})?\d{1,2} \d\d:\d\d:\d\d(?:\.\d{1,6})?"
    r"(?: (?:[CEMP][SD]T|CES?T|UTC|GMT|JST))?(?: (?:[A-Z]{3,4} )?\d{4})?(?: [\w.-]{1,64} "
    r"[\w./-]{1,64}(?:\[\d{1,8}\])?:)?\s?|"
    r"\[?\d{4}-\d\d-\d\d\]?\s|"
    # A logger passes on what another one wrote.
    r"[A-Za-z][\w.]{0,80}: (?:INFO|DEBUG) - (?=\d{4}-\d\d-\d\d \d\d:)|"
    r"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{1,9} +\d{1,20} [\w./-]{1,80}:\d{1,6}\] (?=[IWEF]\d{4} \d\d:)"
)
ANSI = re.compile(rb"\x1b(?:\[[0-9;?]{0,32}[A-Za-z]|\][^\x07\x1b]{0,256}(?:\x07|\x1b\\)|[()][A-Za-z0-9]|[=>])")
# What was typed, or the code of a program, is not what happened: `set -x`, the code of IPython's tracebacks, pip's program.
# A row of squeue, which begins with a number too, ends with a reason.
CODE = re.compile(
    r"\++ (?!message follows \+)|\+[\w./()-]{1,200}:\d+> |> #|\s{0,99}-{2,5}> ?\d+ |"
    r"\s{1,9}\d{1,5}  +\S(?!.{0,200} \d+ \([A-Z]\w{3,60}\)$)|"
    r"\s{0,99}\d+ \| (?!#\s*error\b)|\$ |>>> |\s{4,99}raise \w|"
    r"\s{4,99}(?:print|throw|echo)\b|In \[\d+\]:|Extension modules: "
)

INFO, STATUS, WARNING, ERROR = "info", "status", "warning", "error"
# How a line says how serious it is: with these words, or in the form of TensorFlow's own lines (`I file.cc:5]`, `W0000 00:00:…`).
INFORMS = re.compile(
    r"\bNCCL (?:INFO|TRACE)\b|^\W{0,4}(?:DEBUG|INFO|TRACE|NOTE|Note(?=:)|STATUS)\b|\s-?\s?(?:INFO|DEBUG)\s?[\]:-]|"
    r'"level":"(?:INFO|DEBUG|TRACE)"'
)
# A number, and several with their names, as `max = 7.87E-04, rms = 4.99E-04` and `[0., < 1.0e-11]`.
NUMBER = r"[-+]?(?:\d*\.\d+|\d+\.|\d+)(?:[eEdD][-+]?\d+)?"
NUMBERS = (
    r"(?=.{0,200}\d\.|.{0,200}\.\d)"
    r"(?:[\[(<~,;|\s]{0,9}(?:[A-Za-z][\w|^.-]{0,24} {0,4}[=:] {0,4}){0,2}" + NUMBER + r"[\])%]{0,3}){1,12}"
)
# An error that was measured, as `RMS Error: 0.125 eV per atom`, `ERROR = 1.2e-5` and `L_2 Error: [0., 1e-9]`.
MEASURED = re.compile(
    r"\W{0,9}(?:[\w.-]{1,20} ){0,4}(?i:errors?)(?: (?:\(\w{1,9}\)|(?i:code)|at [\w ]{1,20}|on [\w ]{1,20}))?"
    r"\"? {0,20}(?:=>|[:=])\s{0,20}(?:av )?"
    rf"(?:{NUMBERS}|\d+[eE][-+]?\d+|\d+ ?%)"
    r"(?: ?%| ?[\w/^*-]{1,12}(?: per \w{1,12})?)?\W*(?:[,;(|].{0,200})?$|"
    # What a library or a protocol can do, as `ucx_info` lists it.
    r"[\s#*|]{0,12}error (?:handling|correction|detection|mitigation) ?: |"
    r".{0,60}\b(?:ERROR MATRIX|VALUE +ERROR|ERROR CONTROL)\b|"
    r"[^:]{0,60}\b(?i:relative error|rel err|error estimate)\b(?! too| exceed| is (?:too|larger))",
)
WARNS = re.compile(
    r"^\W{0,9}(?:[\w.]{1,99}:\s?)?(?:WARNING|WARN|Warning|warning)\b|\b(?:WARNING|Warning|warning):|"
    r"\[(?:WARN|WARNING|warning|warn)\]|\s-?\s?WARNING\s?[\]:-]|\b[A-Z]\w{1,60}Warning\b|^CMake "
    r"(?:Deprecation )?Warning|\bUCX +(?:WARN|DIAG)\b"
)
# A status report names the file with the errors: `Error Log:  /g/run.e42`.
NAMES_LOG = re.compile(
    r"\W{0,9}(?:[Ee]rror|[Ss]td[Ee]rr|STDERR) ?(?:[Ll]og|[Ff]ile|[Pp]ath|[Oo]utput)?s? ?[:=] {0,40}[\w.~$]{0,40}/\S{1,300}\s*$"
)
# A line of `git log --oneline` or `git reset`: the title of a change, with its number.
CHANGE = re.compile(
    r"(?:HEAD is now at |[*|\\/ ]{1,12})?(?=[0-9a-f]{0,11}\d)(?=\d{0,11}[a-f])[0-9a-f]{7,12} (?:\([^()]{1,99}\) )?[A-Za-z]"
)
# A call of the system that failed, as strace lists it: most of them are looked for elsewhere with success.
TRACED = re.compile(r"(?:\[pid +\d+\] |\d+ +)?(?:[\d:.]+ )?\w{3,20}\(.{0,600}\) += -1 E[A-Z]{3,12} \(")
# Such a line is no status report, although it begins like one: of CMake, and of Canu.
CMAKE_FAILS = re.compile(r"Configuring incomplete| failed, tried \d+ times, giving up")
# A line that begins so is an error, whatever warnings it repeats.
FAILS = re.compile(r"\W{0,4}(?:FATAL|CRITICAL|ERROR): ")
TENSORFLOW = re.compile(r"([IWEF])(?:\d{4} \d| \S{1,200}:\d)")
# The border of a message of Open MPI, and how many lines such a message has at most.
OPEN_MPI_BORDER, MOST_IN_BORDER = re.compile(r"-{60,}$"), 16
FAILED_OPERATION = re.compile(
    r"W \S{1,200}/op_kernel\.cc:\d+\] "
    r"(?:Invalid argument|Not found|Data loss|Failed prec|Resource exhausted|Internal|Unimplemented)"
)
# Jupyter and its spawners: `[I 2019-09-20 11:16:19.265 SingleUserNotebookApp extension:155] …`.
JUPYTER = re.compile(r"\[([DIWEC]) (?:\d{4}-|\d\d:)")
# Programs in Go: `ts=2024-01-02T03:04:05Z caller=main.go:9 level=warn msg="..."`.
LOGFMT = re.compile(r"(?:\w{1,20}=(?:\"[^\"]{0,200}\"|\S{1,99}) ){0,4}(?:level|lvl)=\"?(debug|info|notice|trace|warn)")
# Toil, with the thread and the level behind the time; libfabric, with the level in front of the message.
TOIL = re.compile(r"\[[\w-]{1,60}\] \[([DIW])\] \[toil")
# Slurm's daemons, with the step before the level.
SLURM_DEBUG = re.compile(r"(?:\[[\w.]{1,40}\] )?(?:slurm\w{1,10}: )?debug[2-5]?: +\S")
LIBFABRIC = re.compile(r".{0,60}\blibfabric:\d+:.{1,200}?<(?:info|debug|trace)>")
# The line says itself that it does not matter.
EXCUSED = re.compile(
    # Open MPI's own `(ignored)` is the end of a long line, which may be cut.
    r"\(ignored\)|\bmca_base_component_repository_open: unable to open mca_|(?<!\d )(?<!-)\bignor(?:e|ed|ing)\b|\b[Ii]gnoring\b|"
    r"\b(?:will retry|retry in \d)|\b[Rr]etrying(?: (?:in|after|with|\d|\()|\s*$)|"
    r"\battempt \d+ (?:of|/) ?\d+|"
    r"\b(?:[Ff]alling|[Ff]all|[Ff]alls) ?-?back\b|\bfallback\b|\bnon-?fatal\b|\bharmless\b|\bsafely\b|"
    r"\bcan be (?:safely )?(?:ignored|disregarded)|\(optional\)|\boptional (?:package|module|dependency)|"
    r"\b[Cc]ontinuing (?:without|anyway|with)|\bso (?:use|uses|using|we use)\b|"
    r"(?<!argument\(s\) )\bskipp(?:ed|ing)\b|\bPerforming Test\b|\bLooking for\b|\bchecking (?:for|whether|"
    r"if)\b(?!.{0,200}\berror: )|"
    # A count; `…/overlay-images/0 error: while mounting` is none.
    r"\b(?i:failed|wrong) +tests? *[:=]? *0$|(?<![\w/])0 (?:errors?|failures?)\b(?!:)|"
    # Gloo prints the text of an error number behind its place: `pair.cc:144] no error` is an error all the same.
    r"\bno (?:errors?|failures?)\b(?<!\d\] no error)|"
    r"\b(?i:errors?|failures?|failed|fail|fatal|unexpected)(?i: count| found| total)? ?[:=] {0,9}0\b(?![.\d]|:\S| NetCDF)|"
    r"\bnot (?:an )?required\b|\bexpected failure|\bEXPECTEDFAIL\b|\bXFAIL|\bxfailed\b|\brecovered\b|\bdeprecat|"
    r"\bfailed: \d+, retr|\btolerat|2> ?/dev/null|\btype: \S+: not found|\bError [1-9]\d* \(ignored\)|"
    r"\b(?:[Uu]sing|[Rr]un(?:ning)? on|[Tt]rain(?:ing)? on|[Dd]efaulting to|[Ss]witching to|"
    r"[Pp]roceeding (?:on|with)) (?:the )?CPU\b",
)
# A line without one of these words has no excuse, and is not searched for one.
EXCUSE_WORDS = word_set(
    "ignored ignore ignoring retry retrying attempt falling fall falls fallback nonfatal fatal harmless "
    "safely disregarded optional so "
    "continuing skipped skipping performing looking checking errors failures failure required expected xfail "
    "xfailed expectedfail recovered "
    "deprecated deprecation deprecate tolerate tolerated null type error failed fail unexpected cpu retries "
    "mca"
)
EXCUSES_ABOVE = re.compile(
    r"\b[Ii]gnore (?:the )?(?:above|previous)|\bthe (?:above|previous) (?:error|warning|message)s? (?:can|is|"
    r"are|may|should)\b[^.]{0,60}(?:ignored|harmless|normal|expected)|"
    # Horovod's CMake tries to import each framework; it can do without these.
    r"^\s{0,9}-- Could NOT find (?:Mxnet|Pytorch)\b|"
    r"\b(?:this|these) (?:error|warning|message)s? (?:is|are|can be)\b[^.]{0,40}(?:harmless|ignored|expected|normal)|"
    # Shells that cannot read the function `module` of another shell.
    r"\berror importing function definition for\b|"
    # Open MPI does without CUDA; the message about it may have lost its border.
    r"^(?P<cuda>--mca \S+ 0 to suppress this message)|"
    # PMIx does without most of its parts; if not, it says more.
    r"\bPMIx stopped checking at the first component\b|"
    # The C compiler of a package that can do without this part, as distutils and setuptools say.
    r"\b(?:[Ww]arning|WARNING): .{0,40}\b(?P<extension>building (?:optional )?extension \S{1,100} failed)\b|"
    # A recipe of make with `-` before it.
    r"^(?P<recipe>g?make(?:\[\d+\])?: .{0,200}\bError [1-9]\d* \(ignored\))|"
    # Apptainer does without FUSE.
    r"\bfalling back to extraction\b|"
    # Spack has the source already, or finds it at another address; a package that its build cache does not have is built.
    r"^(?P<fetched>==> Already (?:fetched|staged)\b|==> Failed to fetch file from URL: \S{1,300}/build_cache/|"
    r"==> Trying to fetch from )|"
    # CMake came to the end of its configuration without what it did not find.
    r"^(?P<configured>(?:-- )?Configuring done)|"
    # Environment Modules found another module that also serves as the requirement.
    r"^(?P<required>\s{0,8}Loading requirement: )|"
    # A log of sshd: after a login that it accepts, those that it refused before are routine.
    r"^(?P<accepted>(?:sshd(?:-session)?\[\d+\]: )?Accepted (?:publickey|password|gssapi-with-mic|hostbased) for \S{1,80} from )"
)
# The lines below do not matter, as this one says.
EXCUSES_BELOW = re.compile(
    r"\b(?:ignore|disregard)\b.{0,60}\b(?:errors?|messages?|failures?|exceptions?|tracebacks?|\w+Errors?)\b.{0,60}\bbelow\b|"
    r"\b(?:ignore|disregard)\b.{0,40}\bfollowing (?:errors?|warnings?|messages?|failures?|exceptions?|tracebacks?)\b|"
    r"^\W{0,9}(?:.{0,60}\. )?(?:errors|failures|warnings) (?:below )?are expected and normal\b|"
    r"\bfollowing (?:errors?|warnings?|messages?|failures?|exceptions?|tracebacks?)\b(?: messages?)? "
    r"(?:(?:can|may|should) be (?:safely )?(?:ignored|disregarded)|(?:is|are) (?:harmless|expected|normal))",
    re.IGNORECASE,
)
BELOW_WORDS = word_set("ignore disregard following expected")
ABOVE_WORDS = word_set(
    "extension extraction fetch suppress above previous harmless ignored expected normal mxnet pytorch importing warning already "
    "pmix requirement accepted configuring"
)
# How many lines above it such a line excuses; the messages about CUDA and of a compiler have more, and a login that sshd
# accepts or the end of CMake's configuration all of their kind.
REACH, LONG_REACH, WHOLE_LOG = 4, 8, 1_000_000_000
# How many lines below it.
REACH_BELOW = 8
# What Spack and curl print while they fetch a source: only these lines are excused by one that says that the source is there.
FETCHES = re.compile(r"\s*(?:curl: \(|==> )")
# What CMake does not find, whether a package needs it or not.
NOT_FOUND = re.compile(r"\s*(?:-- )?Could NOT find ")
# What Environment Modules print of each requirement that they try.
REQUIRES = re.compile(r"\s*ERROR: Load of requirement ")
# What tidies up or compares before a recipe goes on; an error of a compiler counts, as with the `make -i` of WRF.
TIDIES = re.compile(r"\s*(?:rm|rmdir|mv|cp|ln|mkdir|ls|cat|chmod|diff|cmp|find|grep): ")
# What clients of ssh and sshd print of a login that is refused.
LOGINS = re.compile(
    r".{0,80}(?:Permission denied \((?:publickey|password|keyboard|gssapi|hostbased)|Permission denied, please try again)|"
    r"(?:sshd\S{0,30}: )?(?:kex_exchange_identification: |Connection (?:closed|reset) by )"
)
ANY = re.compile("")


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
            rank, text = rank or found[0].strip(), text[found.end() :]
        elif (found := CLOCK.match(text)) and (found.end() < len(text) or ":" in text):
            text = text[found.end() :]
        else:
            break
    return Line(number=number, raw=raw, text=text, rank=rank)


def level(text: str) -> str:
    """How serious the beginning of a line says that the line is."""
    if form := TENSORFLOW.match(text):
        if "OP_REQUIRES failed" in text or FAILED_OPERATION.match(text):
            return ERROR  # TensorFlow calls it a warning, but the operation failed
        return {"I": INFO, "W": WARNING}.get(form[1], ERROR)
    if form := JUPYTER.match(text):
        return {"D": INFO, "I": INFO, "W": WARNING}.get(form[1], ERROR)
    if ("level=" in text or "lvl=" in text) and (form := LOGFMT.match(text)):
        return INFO if form[1][0] in "dint" else WARNING
    if "] [toil" in text and (form := TOIL.match(text)):
        return WARNING if form[1] == "W" else INFO
    if "debug" in text and SLURM_DEBUG.match(text):
        return INFO
    if "libfabric:" in text and LIBFABRIC.match(text):
        return INFO
    if text.startswith(("-- ", "CUDA_TOOLKIT_ROOT_DIR not")) and not CMAKE_FAILS.search(text):
        return STATUS  # CMake reports what it found and what not, whether it needs it or not
    if text.startswith(("/etc/", "debconf: ")):
        # A script of the site, such as a prolog or /etc/profile.d, complains and goes on; debconf has no terminal to ask at.
        return WARNING
    start = text[:160]
    lowered = start.lower()
    if "err" in lowered and (MEASURED.match(start) or NAMES_LOG.match(start)):
        return INFO
    if FAILS.match(start) or "UnsupportedClassVersionError" in start or "sbatch: error: Batch job" in start:
        return ERROR
    if CHANGE.match(start) or (" = -1 E" in text and TRACED.match(text)):
        return INFO
    if ("warn" in lowered or "UCX" in start) and WARNS.search(start):
        return WARNING
    if any(word in start for word in ("INFO", "DEBUG", "TRACE", "NOTE", "Note", "STATUS")) and INFORMS.search(start):
        return INFO
    if text.startswith(("[I] ", "[D] ", "I | ", "D | ", "N | ", "T | ")):
        return INFO
    if text.startswith(("[W] ", "W | ")):
        return WARNING
    return ERROR


def is_in_warning(above: Iterable[str]) -> bool:
    """Whether a line is part of a message of Open MPI with a border that begins with `WARNING`.

    `above` are the lines above it, the nearest first.
    """
    nearest = ""
    for raw in islice(above, MOST_IN_BORDER):
        text = raw.strip()
        if OPEN_MPI_BORDER.match(text):
            return nearest.startswith("WARNING")
        nearest = text or nearest
    return False


def is_excused(text: str, words: frozenset[str]) -> bool:
    """Whether a line with these words says itself that it does not matter."""
    return not words.isdisjoint(EXCUSE_WORDS) and EXCUSED.search(text) is not None


def excuses_above(text: str, words: frozenset[str]) -> tuple[int, re.Pattern[str]] | None:
    """How many lines above it do not matter, as a line with these words says, if they begin so; None if it says nothing."""
    found = None if words.isdisjoint(ABOVE_WORDS) else EXCUSES_ABOVE.search(text)
    if found is None:
        return None
    if found["cuda"] or found["extension"]:
        return LONG_REACH, ANY
    if found["accepted"]:
        return WHOLE_LOG, LOGINS
    if found["configured"]:
        return WHOLE_LOG, NOT_FOUND
    beginnings = {"fetched": FETCHES, "required": REQUIRES, "recipe": TIDIES}
    return REACH, next((beginning for name, beginning in beginnings.items() if found[name]), ANY)


def excuses_below(text: str, words: frozenset[str]) -> int:
    """How many lines below it do not matter, as a line with these words says; 0 if it says nothing."""
    return REACH_BELOW if not words.isdisjoint(BELOW_WORDS) and EXCUSES_BELOW.search(text) else 0


def is_code(text: str) -> bool:
    """Whether a line shows a command or a program's code."""
    return CODE.match(text) is not None
