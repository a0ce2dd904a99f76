"""The rules for the text of a job script: placeholders, directives that are not read, and traps of the shell."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from provision.lint import Finding
from provision.lint.job_script import JobScript, fault, tasks_of
from provision.lint.shell_lines import Command, Line, base
from provision.schedulers import TITLES

BLANK = re.compile(
    r"<[A-Za-z][A-Za-z0-9 _-]*>|\bNetID\b|\bnn[XxYyKk]{2,}k\b|\b[Yy][Oo][Uu][Rr][_-][A-Za-z_]+|\bCHANGE_?ME\b|\bTODO\b|\bXXX+\b"
    r"|(?<==)\"?\?\"?(?=\s|$)|(?<==)\.\.\.(?=\s|$)|\bexample-(?:partition|constraint|account|queue)\b"
    r"|/path/to(?:/[\w.-]*)*|\bexample_proxy[\w.]{0,80}|\byourusername\b|\bMyProject\b"
)
CACHES = ("APPTAINER_CACHEDIR", "SINGULARITY_CACHEDIR", "APPTAINER_TMPDIR", "PIP_CACHE_DIR", "KERAS_HOME")
# A line that was meant to be a directive. `##SBATCH` is the usual way to switch one off, so it is not among them.
LOST = re.compile(
    r"#\s+(SBATCH|PBS|COBALT)\s+-{1,2}\w|#(sbatch|Sbatch|SBACTH|SBTACH|SABTCH|SBATH|SBATC|pbs|cobalt)\s+-{1,2}\w"
)
UNMARKED = ("SBATCH", "PBS", "COBALT")
# Variables that are set without the script: by the scheduler, the login shell, or the modules of a site.
SET_BY_OTHERS = re.compile(
    r"HOME|USER|TMPDIR|SCRATCH|PSCRATCH|USERWORK|LOCALSCRATCH|WORK|SLURM_\w+|PBS_\w+|COBALT_\w+|EB\w+|XDG_\w+|[0-9@#*?$!_-]"
)
QUIET = (
    "echo",
    "printf",
    "date",
    "hostname",
    "set",
    "export",
    "unset",
    "ulimit",
    "exit",
    "wait",
    "sleep",
    "nvidia-smi",
    "true",
)
FOLDERS_OF_NODE = re.compile(r"/tmp(/|$)|/dev/shm(/|$)|/local/scratch(/|$)|\$\{?(TMPDIR|LOCALSCRATCH|SLURM_TMPDIR)\b")


def check_text(script: JobScript) -> Iterator[Finding]:
    """What is wrong in the text of any job script."""
    yield from _file(script)
    yield from _blanks(script)
    yield from _directives(script)
    yield from _lines(script)
    yield from _variables(script)
    for command in script.commands:
        yield from _removal(script, command)
    yield from _background(script)
    yield from _first_node(script)


def _file(script: JobScript) -> Iterator[Finding]:
    """What the scheduler refuses before it reads a directive."""
    if "\r\n" in script.text:
        number = script.text[: script.text.index("\r\n")].count("\n") + 1
        yield fault(
            script,
            "line-ends",
            (number, ""),
            "the lines end as those of Windows: sbatch refuses such a script, and bash takes the carriage return as text",
            f"`sed -i 's/\\r$//' {script.name}`",
        )
    if not script.is_python and not script.lines:
        yield fault(script, "empty", (1, ""), "the script has no command", "add the command that the job shall run")
    if script.text and not script.text.startswith("#!") and script.scheduler == "slurm":
        yield fault(
            script,
            "no-interpreter",
            (1, script.text.split("\n", 1)[0].strip()),
            "sbatch refuses a script whose first line does not begin with `#!`",
            "make `#!/bin/bash` the first line",
        )
    stops = re.search(r"^[ \t]*set -\S*e|^[ \t]*set -o errexit|^[ \t]*trap .* ERR", script.text, re.MULTILINE)
    # The last command ends the job with its own status; only a failure of another goes unseen.
    working = [command for command in script.commands if not _is_quiet(command) and not command.within]
    if (
        script.scheduler != "none"
        and script.is_sh
        and not stops
        and len({command.line.number for command in working}) > 1
    ):
        yield fault(
            script,
            "goes-on",
            (working[0].line.number, working[0].line.text),
            "the script continues after a command that failed",
            "put `set -euo pipefail` before the first command",
        )


def _is_quiet(command: Command) -> bool:
    """Whether a failure of this command changes nothing for those behind it."""
    return command.name in QUIET or command.words[:2] in (("module", "purge"), ("module", "reset"), ("module", "list"))


def _blanks(script: JobScript) -> Iterator[Finding]:
    """Placeholders in directives and commands."""
    places = [(option.line, option.text) for option in script.options.values()]
    reported = {
        command.line.number for command in script.commands if command.name in ("echo", "printf", "cat", "usage", "die")
    }
    places += [(line.number, line.text) for line in script.lines if line.number not in reported]
    for number, text in dict.fromkeys(places):
        blank = BLANK.search(text)
        if blank:
            message = f"`{blank[0]}` is a placeholder"
            yield fault(script, "blank", (number, text), message, "replace it with your value")


def _directives(script: JobScript) -> Iterator[Finding]:
    """Directives that the scheduler does not read."""
    for line in script.late:
        why, fix = _why_unread(script, line)
        yield fault(script, "late-directive", line, why, fix)
    for line in script.comments:
        lost = LOST.match(line.text)
        if lost:
            word = (lost[1] or "").upper() or ("PBS" if "pbs" in lost[2].lower() else "SBATCH")
            yield fault(
                script,
                "lost-directive",
                line,
                "this is a comment, so the scheduler does not read it",
                f"write `#{word}` without a space, or `##{word}` if it is meant to be off",
            )
    for command in script.commands:
        if command.words[0] in UNMARKED and len(command.words) > 1 and command.words[1].startswith("-"):
            yield fault(
                script,
                "unmarked-directive",
                command.line,
                f"bash runs this as a command, and {TITLES[script.scheduler]} does not read it"
                if script.scheduler != "none"
                else "bash runs this as a command, and no scheduler reads it",
                f"`#{command.line.text}`, at the top of the script",
            )


def _why_unread(script: JobScript, line: Line) -> tuple[str, str]:
    """Why the scheduler does not read this directive, and what to do about it."""
    if script.scheduler == "cobalt":
        return (
            "Cobalt reads directives only directly behind `#!`, and stops at the first other line, also a comment",
            "move it directly behind the line `#!`, among the other directives",
        )
    if script.scheduler == "slurm" and script.is_indented(line):
        return "Slurm ignores a directive with white space before it", "remove the white space"
    return "the scheduler ignores a directive after the first command", "move it to the top of the script"


def _lines(script: JobScript) -> Iterator[Finding]:
    """Traps of the shell in single lines."""
    for line in script.lines:
        if line.glued:
            yield fault(
                script,
                "glued-backslash",
                line,
                "no space before the backslash, so this word and the next line become one word",
                "put a space before the backslash",
            )
        if "--no-check-certificate" in line.words:
            yield fault(
                script,
                "no-certificate",
                line,
                "the server of this download is not verified",
                "remove `--no-check-certificate`",
            )
        if re.search(r"bash -l?c (\"|').*source [^;&]*;", line.text[:1000], re.DOTALL):
            yield fault(
                script, "source-then", line, "the program runs even if `source` fails", "use `&&` instead of `;`"
            )
    for command in script.commands:
        if command.name in ("source", ".") and len(command.words) > 1 and base(command.words[1]) == ".bashrc":
            yield fault(
                script,
                "login-files",
                command.line,
                "what this file does changes with your account, so the job is not repeatable",
                "write what the job needs of it into the script",
            )


def _variables(script: JobScript) -> Iterator[Finding]:
    """Variables that do not reach the programs, or hold the wrong kind of path."""
    for name, (value, number, exported) in script.variables.items():
        where = (number, f"{name}={value}")
        if name in CACHES and not exported:
            yield fault(
                script,
                "not-exported",
                where,
                f"`{name}` is not exported, so programs do not see it",
                f"`export {name}=…`",
            )
        if name == "PYTHONPATH" and re.search(r"\$\{?PATH\}?", value):
            yield fault(script, "path-in-pythonpath", where, "PYTHONPATH contains PATH", "remove PATH from PYTHONPATH")


def _removal(script: JobScript, command: Command) -> Iterator[Finding]:
    """`rm -rf` of a path that begins elsewhere if a variable is not set."""
    if command.name != "rm" or not any(re.fullmatch(r"-\w*[rR]\w*|--recursive", word) for word in command.words):
        return
    checked = re.search(r"^[ \t]*set -\S*u|^[ \t]*set -o nounset", script.text, re.MULTILINE)
    for word in command.words[1:] if not checked else ():
        for name in re.findall(r"\$\{?([A-Za-z_]\w*)\}?(?=/|$)", word[:4096]):
            if name not in script.variables and not SET_BY_OTHERS.fullmatch(name) and f"for {name} " not in script.text:
                yield fault(
                    script,
                    "removes-more",
                    command.line,
                    f"if `{name}` is not set, this removes the folder above",
                    f"`${{{name}:?}}` stops the script if it is not set",
                )
                return


def _background(script: JobScript) -> Iterator[Finding]:
    """Programs in the background that nothing waits for: the job ends, and the scheduler kills them."""
    behind = [
        command
        for number, command in enumerate(script.commands)
        if command.ends_with == "&" and command.launcher and not _goes_on(command, script.commands[number + 1 :])
    ]
    if behind and not any(command.name in ("wait", "fg") for command in script.commands):
        last = script.commands[-1]
        if last is behind[-1] or (last.name in QUIET and last.name != "sleep"):
            yield fault(
                script,
                "no-wait",
                behind[-1].line,
                "nothing waits for this program: the script ends, and the scheduler kills it",
                "remove the `&`, or put `wait` at the end of the script",
            )


def _goes_on(command: Command, later: Sequence[Command]) -> bool:
    """Whether a command runs beside others in one `bash -c`, which does not end before the last of them."""
    return bool(command.within) and any(
        other.within and other.line is command.line and other.ends_with != "&" for other in later
    )


def _first_node(script: JobScript) -> Iterator[Finding]:
    """Files that are copied to the first of several nodes only."""
    nodes = script.number("nodes") or 1
    if nodes < 2 or (tasks_of(script) or nodes) < 2:
        return
    for command in script.commands:
        if command.launcher or command.name not in ("cp", "rsync", "unzip", "tar"):
            continue
        target = command.words[-1]
        for option in ("-C", "-d", "--directory"):
            if option in command.words[:-1]:
                target = command.words[command.words.index(option) + 1]
        if FOLDERS_OF_NODE.match(script.filled(target)) or FOLDERS_OF_NODE.match(target):
            yield fault(
                script,
                "first-node-only",
                command.line,
                f"this runs on the first of {nodes} nodes, and `{target}` is a folder of that node",
                "put `srun --ntasks-per-node=1` before it"
                if script.scheduler == "slurm"
                else "start it once on each node with the launcher",
            )
