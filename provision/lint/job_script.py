"""Reads a job script: its directives, modules, variables, and the commands that start programs.

The script is read as text, not run. Variables that the script sets to plain text are replaced; all others stay as they are.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field

from provision.knowledge.whole_numbers import whole_number
from provision.lint import Finding
from provision.profile.scheduler import SchedulerName

PREFIXES: dict[str, SchedulerName] = {"#SBATCH": "slurm", "#PBS": "pbs", "#COBALT": "cobalt"}
LAUNCHERS = ("srun", "mpirun", "mpiexec", "aprun", "horovodrun")
# The long names of the one-letter options of each scheduler. No rule uses the options that are missing here.
SHORT: dict[SchedulerName, dict[str, str]] = {
    "slurm": {
        "-N": "nodes",
        "-n": "ntasks",
        "-A": "account",
        "-p": "partition",
        "-q": "qos",
        "-C": "constraint",
        "-t": "time",
        "-c": "cpus-per-task",
        "-G": "gpus",
        "-L": "licenses",
        "-J": "job-name",
        "-o": "output",
    },
    "pbs": {"-A": "account", "-q": "partition", "-N": "job-name", "-o": "output", "-W": "attributes"},
    "cobalt": {"-n": "nodes", "-t": "time", "-q": "partition", "-A": "account", "-O": "output"},
    "none": {},
}
ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A logical line: continuations joined, comments removed, split into words (a comment line has none)."""

    number: int
    text: str
    words: tuple[str, ...]
    glued: bool
    """Whether a backslash at the end of a line touches the word before it, which then continues in the next line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """The value of an option in a directive, and the line that holds it."""

    value: str
    line: int
    text: str


@dataclass(slots=True, kw_only=True)
class JobScript:
    """A job script: its directives, its command lines and its variables."""

    name: str
    text: str
    scheduler: SchedulerName = "none"
    options: dict[str, Option] = field(default_factory=dict)
    late: list[Line] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    variables: dict[str, tuple[str, int, bool]] = field(default_factory=dict)
    """Each name with its value, its line, and whether it is exported."""

    def number(self, key: str) -> int | None:
        """The whole number that a directive gives; None if there is none."""
        option = self.options.get(key)
        return whole_number(option.value) if option else None

    def is_indented(self, line: Line) -> bool:
        """Whether white space stands before this line."""
        return self.text.splitlines()[line.number - 1][:1].isspace()

    def line_of(self, *keys: str) -> tuple[int, str]:
        """The line of the first of these options that the script has, or its first line if it has none of them."""
        for key in keys:
            if key in self.options:
                return self.options[key].line, self.options[key].text
        return 1, ""

    def started(self) -> Iterator[tuple[Line, str, tuple[str, ...]]]:
        """The lines that start ranks, each with the launcher and all words after it."""
        for line in self.lines:
            for index, word in enumerate(line.words):
                before = line.words[index - 1] if index else ""
                if word.rsplit("/", 1)[-1] in LAUNCHERS and before in ("", "time", "exec", "&&", ";", "then", "!"):
                    yield line, word.rsplit("/", 1)[-1], line.words[index + 1 :]
                    break

    def modules(self) -> Iterator[tuple[Line, str]]:
        """Every module that the script loads, with its line."""
        for line in self.lines:
            for command in _commands(line.words):
                words = [word for word in command if not word.startswith("-")]
                if words[:2] in (["module", "load"], ["module", "add"]):
                    yield from ((line, name) for name in words[2:])
                elif words[:1] == ["ml"] and words[1:2] not in (["purge"], ["reset"], ["list"]):
                    yield from ((line, name) for name in words[1:])

    def does(self, *words: str) -> int | None:
        """The line of the first command that begins with these words, not counting options between them."""
        for line in self.lines:
            for command in _commands(line.words):
                plain = [word for word in command if not word.startswith("-")]
                if tuple(plain[: len(words)]) == words:
                    return line.number
        return None

    def program(self) -> str | None:
        """The Python file that the script starts, with the script's variables replaced; None for `-c` and `-m`."""
        for line in self.lines:
            for index, word in enumerate(line.words):
                if re.fullmatch(r"(.*/)?python[0-9.]*", word):
                    options = ("-c", "-m", "-")
                    after = next((w for w in line.words[index + 1 :] if not w.startswith("-") or w in options), ";")
                    if after not in options and not after.startswith((";", "&", "|", "<", ">", ")")):
                        return self.filled(after)
        return None

    def filled(self, text: str) -> str:
        """The text, with the variables that the script sets replaced by their values."""
        for _ in range(5):
            before = text
            text = re.sub(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)\}?", lambda match: self._value(match[1], match[0]), text)
            if text == before:
                break
        return text

    def _value(self, name: str, otherwise: str) -> str:
        return self.variables[name][0] if name in self.variables else otherwise


def _commands(words: tuple[str, ...]) -> Iterator[list[str]]:
    command: list[str] = []
    for word in words:
        if word in ("&&", "||", ";", "|", "then", "do", "{", "("):
            yield command
            command = []
        else:
            command.append(word)
    yield command


def fault(script: JobScript, rule: str, line: Line | tuple[int, str], message: str, fix: str) -> Finding:
    """A finding at a line of a job script."""
    number, text = (line.number, line.text) if isinstance(line, Line) else line
    return Finding(rule=rule, file=script.name, line=number, message=message, evidence=text, fix=fix)


def tasks_of(script: JobScript) -> int | None:
    """The total number of tasks that a script requests; None if it does not give it."""
    each, nodes = script.number("ntasks-per-node") or script.number("tasks-per-node"), script.number("nodes")
    if each is not None:
        return each * (nodes or 1)
    return script.number("ntasks")


def ranks_per_node(script: JobScript) -> int:
    """The tasks on each node, as far as the script gives them: 1 if the scheduler may put each task on another node."""
    each = script.number("ntasks-per-node") or script.number("tasks-per-node")
    if each is not None:
        return each
    nodes = script.number("nodes")
    return 1 if nodes is None else max(1, (tasks_of(script) or 1) // max(1, nodes))


def gpus_of(script: JobScript) -> int:
    """The GPUs that a script requests on each node, as far as it gives them; 0 means none."""
    nodes = script.number("nodes") or 1
    for key, share in (("gres", 1), ("gpus-per-node", 1), ("gpus", nodes), ("gpus-per-task", 0)):
        option = script.options.get(key)
        count = re.search(r"(?<!\d)(\d{1,15})$", option.value) if option else None
        if count and (key != "gres" or (option is not None and option.value.startswith("gpu"))):
            if share:
                return max(1, int(count[1]) // share)
            return int(count[1]) * ranks_per_node(script)
        if option is not None and key == "gres" and option.value == "gpu":
            return 1
    return 0


def read_script(text: str, name: str) -> JobScript:
    """The script in this text. Reading never fails: the rules report everything that is wrong."""
    script = JobScript(name=name, text=text)
    begun, last_for_cobalt = False, _read_by_cobalt(text)
    for line in _lines(text):
        prefix = next((prefix for prefix in PREFIXES if line.text.startswith(f"{prefix} ")), None)
        if prefix is None:
            if line.text and not line.text.startswith("#"):
                begun = True
                script.lines.append(line)
                _assign(script, line)
            continue
        script.scheduler = PREFIXES[prefix]
        # PBS reads indented directives (OpenPBS 23.06, check_job_script.c), but sbatch does not (Slurm 25.05, sbatch/opt.c).
        indented = script.scheduler == "slurm" and script.is_indented(line)
        if line.number > last_for_cobalt if script.scheduler == "cobalt" else begun or indented:
            script.late.append(line)
            continue
        for key, value in _options(line.text.removeprefix(prefix), script.scheduler):
            script.options[key] = Option(value=value, line=line.number, text=line.text)
    return script


def _read_by_cobalt(text: str) -> int:
    """The last line that Cobalt's qsub reads: it stops at the first line behind `#!` that is not a directive (1.0.33)."""
    lines = text.splitlines()
    if not text.startswith("#!"):
        return 0
    return next((number for number, line in enumerate(lines) if number and not line.startswith("#COBALT ")), len(lines))


def _lines(text: str) -> Iterator[Line]:
    whole, first, glued = "", 0, False
    for number, raw in enumerate(text.splitlines(), 1):
        first = first or number
        if raw.endswith("\\") and not raw.lstrip().startswith("#"):
            glued = glued or bool(re.search(r"[^\s\\]\\$", raw))
            whole += raw[:-1] + " "
            continue
        yield _line(first, (whole + raw).strip(), glued)
        whole, first, glued = "", 0, False
    if whole:
        yield _line(first, whole.strip(), glued)


def _line(number: int, text: str, glued: bool) -> Line:
    if text.startswith("#"):
        return Line(number=number, text=text, words=(), glued=False)
    lexer = shlex.shlex(text, posix=True, punctuation_chars=";&|()")
    lexer.whitespace_split = True
    try:
        words = tuple(lexer)
    except ValueError:  # a quoted text that continues in the next line: bash reads that, we do not
        words = tuple(text.split())
    return Line(number=number, text=text, words=words, glued=glued)


def _assign(script: JobScript, line: Line) -> None:
    exported = line.words[:1] == ("export",)
    for word in line.words[1:] if exported else line.words[:1]:
        assignment = ASSIGNMENT.fullmatch(word)
        if assignment:
            script.variables[assignment[1]] = (assignment[2], line.number, exported)
        elif exported and word in script.variables:
            script.variables[word] = (*script.variables[word][:2], True)


def _options(text: str, scheduler: SchedulerName) -> Iterator[tuple[str, str]]:
    """The options of a directive, with their long names."""
    try:
        words = shlex.split(text, comments=True)
    except ValueError:
        words = text.split()
    index = 0
    while index < len(words):
        word, index = words[index], index + 1
        following = words[index] if index < len(words) and not words[index].startswith("-") else ""
        if word.startswith("--"):
            key, separator, value = word[2:].partition("=")
            if not separator and following:
                value, index = following, index + 1
            yield key, value
            if key == "attrs":
                yield from _attributes(value)
        elif scheduler == "pbs" and word == "-l":
            index += 1
            yield from _resources(following)
        elif word[:2] in SHORT[scheduler]:
            value = word[2:] or following
            index += 0 if word[2:] else 1
            yield SHORT[scheduler][word[:2]], value


def _resources(text: str) -> Iterator[tuple[str, str]]:
    """The options in `-l` of PBS: `select=2:system=x:ngpus=4`, `walltime=…`, `filesystems=home:eagle`."""
    key, _, value = text.partition("=")
    if key != "select":
        yield {"walltime": "time"}.get(key, key), value
        return
    nodes, *chunk = value.split(":")
    yield "nodes", nodes
    for part in chunk:
        name, _, amount = part.partition("=")
        yield {"ngpus": "gpus-per-node", "mem": "mem"}.get(name, name), amount


def _attributes(text: str) -> Iterator[tuple[str, str]]:
    """The options in `--attrs` of Cobalt: `mcdram=cache:filesystems=home,theta-fs0`."""
    for part in text.split(":"):
        name, _, value = part.partition("=")
        if name == "filesystems":
            yield name, value
