"""The rules for the text of a job script: placeholders, directives that are not read, and what makes a run fail unseen."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from itertools import pairwise

from provision.lint.imports import read_imports
from provision.lint.job_script import TOP, JobScript
from provision.lint.rule import Found, advice, error, warning
from provision.lint.shell_lines import ASSIGNMENT, ShellCommand, ShellLine
from provision.lint.syntax import KNOWN_MODULES
from provision.lint.training_script import TrainingProgram

BLANK = re.compile(
    r"<[A-Za-z][A-Za-z0-9 _-]*>|\bNetID\b|\bnn[XxYyKk]{2,}k\b|\b[Yy][Oo][Uu][Rr][_-][A-Za-z_]+|\bCHANGE_?ME\b|\bTODO\b|\bXXX+\b"
    r"|(?<==)\"?\?\"?(?=\s|$)|(?<==)\.\.\.(?=\s|$)|\bexample-(?:partition|constraint|account|queue)\b"
    r"|/path/to(?:/[\w.-]*)*|\bexample_proxy[\w.]{0,80}|\byourusername\b|(?<![\w${])MyProject\b(?!=)"
)
COMMENT = re.compile(r"\s#.*")
# What Slurm reads as the values of options. It does not replace variables in directives.
TIME = r"(\d+-)?\d+(:\d+){0,2}|UNLIMITED|INFINITE"
NUMBER, MEMORY = r"\d+", r"\d[\d.]*[KMGTkmgt]?[Bb]?"
VALUES = {
    "nodes": r"\d+[km]?([-:,]\d+[km]?)*",
    "time": TIME,
    **dict.fromkeys(("mem", "mem-per-cpu", "mem-per-gpu"), MEMORY),
    **dict.fromkeys(("ntasks", "ntasks-per-node", "cpus-per-task", "cpus-per-gpu"), NUMBER),
}
CACHES = ("APPTAINER_CACHEDIR", "SINGULARITY_CACHEDIR", "APPTAINER_TMPDIR", "PIP_CACHE_DIR", "KERAS_HOME")
# A line that was meant to be a directive. `##SBATCH` is the usual way to switch one off, so it is not among them.
LOST = re.compile(
    r"#\s+(SBATCH|PBS|COBALT)\s+-{1,2}\w|#(sbatch|Sbatch|SBACTH|SBTACH|SABTCH|SBATH|SBATC|pbs|cobalt)\s+-{1,2}\w"
)
# Commands whose failure changes nothing for those behind them.
QUIET = {
    *("echo", "printf", "date", "hostname", "set", "export", "unset", "ulimit", "exit", "wait", "sleep"),
    *("nvidia-smi", "true"),
}
FOLDERS_OF_NODE = re.compile(r"/tmp(/|$)|/dev/shm(/|$)|/local/scratch(/|$)|\$\{?(TMPDIR|LOCALSCRATCH|SLURM_TMPDIR)\b")

# Commands that change the shell only.
OF_THE_SHELL = {
    *("cd", "export", "set", "setenv", "unset", "unsetenv", "module", "ml", "ulimit", "umask", "declare", "shopt"),
    *("alias", "trap", "exit", "wait", "true", ":"),
}


@error(
    "no line of this script starts a program: the job ends at once",
    "add the command that trains, such as `srun python train.py`",
)
def starts_nothing(job: JobScript) -> Found:
    """A job script or a program that starts nothing."""
    does = (one for one in job.commands if not (one.name in OF_THE_SHELL or ASSIGNMENT.fullmatch(one.words[0])))
    if not (job.is_python or any(does) or re.search(r"^#(BB|DW) ", job.text, re.MULTILINE)):  # of burst buffers
        yield (TOP,)


@error(
    "this program {0}, so it ends at once", "call what trains at the end of the file: `main()`", name="starts-nothing"
)
def runs_nothing(program: TrainingProgram, job_script: JobScript | None) -> Found:
    """A program without code, or one that a job starts and that only defines functions."""
    body = getattr(program.script.nodes[0], "body", [])
    code = [
        node
        for node in body
        if not (isinstance(node, ast.Pass) or isinstance(getattr(node, "value", node), ast.Constant))
    ]
    only_defined = not any(program.script.runs or _may_run(node) for node in code)
    if program.error is None and only_defined and (job_script is not None or not code):
        yield 1, "only defines functions, and calls none" if code else "has no code"


def _may_run(node: ast.stmt) -> bool:
    """Whether a statement of a file may do more than define something."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return any(one.module.partition(".")[0] not in KNOWN_MODULES for one in read_imports([node]))
    return not isinstance(node, ast.FunctionDef | ast.ClassDef) or bool(node.decorator_list)


@error(
    "the lines end as those of Windows: sbatch refuses such a script, and bash takes the carriage return as text",
    "`sed -i 's/\\r$//' {0}`",
)
def line_ends(job: JobScript) -> Found:
    """Line ends of Windows."""
    if "\r\n" in job.text:
        yield ShellLine(number=job.text[: job.text.index("\r\n")].count("\n") + 1, text=""), job.name


@error("sbatch refuses a script whose first line does not begin with `#!`", "make `#!/bin/bash` the first line")
def no_interpreter(job: JobScript) -> Found:
    """A first line without `#!`."""
    if job.scheduler == "slurm" and not job.text.startswith("#!"):
        yield (ShellLine(number=1, text=job.text.split("\n", 1)[0].strip()),)


@error("`{0}` is a placeholder", "replace it with your value")
def blank(job: JobScript) -> Found:
    """A placeholder that was not replaced."""
    printed = {one.line.number for one in job.commands if one.name in ("echo", "printf", "cat", "usage", "die")}
    # The scheduler takes any text as the name of a job.
    directives = [line for key, line in job.options.items() if key != "job-name"]
    for line in (*directives, *(line for line in job.lines if line.number not in printed)):
        found = BLANK.search(COMMENT.sub("", line.text))
        if found and f"{found[0]}(" not in job.text:  # a function of that name
            yield line, found[0]


@error("sbatch refuses `{0}` as the value of `{1}`", "`--{1}={2}`, with two dashes and without spaces")
def directive_value(job: JobScript) -> Found:
    """A value of a directive that Slurm refuses, such as that of `--nodes = 1` and `-time=10`."""
    for key, line in job.options.items() if job.scheduler == "slurm" else ():
        if key in VALUES and not re.fullmatch(VALUES[key], line.value) and not BLANK.search(COMMENT.sub("", line.text)):
            behind = re.search(rf"-{key}\s*=\s*([\w:.-]+)", line.text)
            yield line, line.value, key, behind[1] if behind and re.fullmatch(VALUES[key], behind[1]) else "VALUE"


@error("sbatch refuses `--{0}` with `--{1}`: they are mutually exclusive", "remove one of them", name="directive-value")
def two_memories(job: JobScript) -> Found:
    """Memory that is requested in two ways."""
    given = [key for key in ("mem", "mem-per-cpu", "mem-per-gpu") if key in job.options]
    if job.scheduler == "slurm" and len(given) > 1:
        yield job.line_of(given[1]), given[1], given[0]


@error("{0}", "{1}")
def late_directive(job: JobScript) -> Found:
    """A directive at a place where the scheduler does not read it."""
    for line in job.late:
        if job.scheduler == "cobalt":
            why = "Cobalt reads directives only directly behind `#!`, and stops at the first other line, also a comment"
            yield line, why, "move it directly behind the line `#!`, among the other directives"
        elif job.scheduler == "slurm" and job.is_indented(line):
            yield line, "Slurm ignores a directive with white space before it", "remove the white space"
        else:
            why = "the scheduler ignores a directive after the first command"
            yield line, why, "move it to the top of the script"


@warning(
    "the scheduler does not read this: {0}",
    "write `#{1}` at the beginning of the line, or `##{1}` if it is meant to be off",
)
def lost_directive(job: JobScript) -> Found:
    """A directive that is a comment or a command because it is misspelt."""
    for line in job.comments:
        if lost := LOST.match(line.text):
            yield line, "it is a comment", (lost[1] or "").upper() or ("PBS" if "pbs" in lost[2].lower() else "SBATCH")
    for command in job.commands:
        if command.words[0] in ("SBATCH", "PBS", "COBALT") and command.words[1:2] and command.words[1].startswith("-"):
            yield command.line, "bash runs it as a command", command.words[0]


@error(
    "no space before the backslash, so this word and the next line become one word", "put a space before the backslash"
)
def glued_backslash(job: JobScript) -> Found:
    """A backslash at the end of a line that joins two words."""
    yield from ((line,) for line in job.lines if line.glued)


@warning("the server of this download is not verified", "remove `--no-check-certificate`")
def no_certificate(job: JobScript) -> Found:
    """A download from a server that is not verified."""
    yield from ((line,) for line in job.lines if "--no-check-certificate" in line.words)


@warning("the program runs even if `source` fails", "use `&&` instead of `;`")
def source_then(job: JobScript) -> Found:
    """A program that runs even if `source` failed."""
    pattern = re.compile(r"bash -l?c (\"|').*source [^;&]*;", re.DOTALL)
    yield from ((line,) for line in job.lines if pattern.search(line.text[:1000]))


@warning("`{0}` is not exported, so programs do not see it", "`export {0}=…`")
def not_exported(job: JobScript) -> Found:
    """A variable of caches that programs do not see."""
    yield from ((line, name) for name, line in job.variables.items() if name in CACHES and not line.exported)


@warning("PYTHONPATH contains PATH", "remove PATH from PYTHONPATH")
def path_in_pythonpath(job: JobScript) -> Found:
    """`PATH` in `PYTHONPATH`."""
    if re.search(r"\$\{?PATH\}?", job.set_to("PYTHONPATH")):
        yield (job.variables["PYTHONPATH"],)


@error(
    "nothing waits for this program: the script ends, and the scheduler kills it",
    "remove the `&`, or put `wait` at the end of the script",
)
def no_wait(job: JobScript) -> Found:
    """A program in the background that nothing waits for."""
    commands = job.commands
    behind = [
        command
        for number, command in enumerate(commands, 1)
        if command.ends_with == "&" and command.launcher and not _continues(command, commands[number:])
    ]
    if behind and not any(command.name in ("wait", "fg") for command in commands):
        final = commands[-1]
        if final is behind[-1] or (final.name in QUIET and final.name != "sleep"):
            yield (behind[-1].line,)


def _continues(command: ShellCommand, later: Sequence[ShellCommand]) -> bool:
    """Whether a command runs beside others in one `bash -c`, which does not end before the last of them."""
    beside = (other for other in later if other.within and other.line is command.line)
    return bool(command.within) and any(other.ends_with != "&" for other in beside)


@warning("this runs on the first of {0} nodes, and `{1}` is a folder of that node", "{2}")
def first_node_only(job: JobScript) -> Found:
    """Files that are copied to a folder of the first node only."""
    several = job.nodes > 1 and (job.tasks or job.nodes) > 1
    each = "start it once on each node with the launcher"
    fix = "put `srun --ntasks-per-node=1` before it" if job.scheduler == "slurm" else each
    for command in job.commands if several else ():
        if not command.launcher and command.name in ("cp", "rsync", "unzip", "tar"):
            words = command.words
            targets = [after for word, after in pairwise(words) if word in ("-C", "-d", "--directory")]
            target = (targets or words)[-1]
            if FOLDERS_OF_NODE.match(job.filled(target)) or FOLDERS_OF_NODE.match(target):
                yield command.line, job.nodes, target, fix


@advice("Slurm reads `{0}` as {1} minutes", "`--time={1}:00:00` for hours")
def minutes(job: JobScript) -> Found:
    """A time in minutes that looks like one in hours."""
    hours = re.fullmatch(r"(24|36|48|72|96):00", job.value("time") or "")
    if hours and job.scheduler == "slurm":
        yield job.line_of("time"), hours[0], hours[1]


@warning(
    "the number of nodes is not given, so the tasks may be on any number of nodes",
    "add `--nodes=N` and `--ntasks-per-node=N`",
)
def tasks_anywhere(job: JobScript) -> Found:
    """GPUs per task without a number of nodes."""
    placed = {"nodes", "ntasks-per-node", "tasks-per-node", "ntasks-per-gpu"} & set(job.options)
    if "gpus-per-task" in job.options and not placed and (job.number("ntasks") or 0) > 1:
        yield (job.line_of("ntasks"),)
