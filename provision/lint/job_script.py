"""Reads a job script: its directives, modules, variables, and the commands that start programs.

The script is read as text, not run. Variables that the script sets to plain text are replaced, and so are those of the
folder of the script; all others stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from provision.knowledge.whole_numbers import whole_number
from provision.lint import Finding
from provision.lint.directive_options import read_options
from provision.lint.shell_lines import ASSIGNMENT, SHELLS, Command, Line, base, read_commands, read_lines
from provision.profile.scheduler import SchedulerName

PREFIXES: dict[str, SchedulerName] = {"#SBATCH": "slurm", "#PBS": "pbs", "#COBALT": "cobalt"}
# The folder from which the job was submitted, which is taken to be that of the script.
FOLDERS = ("PWD", "SLURM_SUBMIT_DIR", "PBS_O_WORKDIR", "COBALT_STARTDIR")
VARIABLE = re.compile(r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)(?::?-([^${}]*))?\})")
PYTHON = re.compile(r"(?:.*/)?python[0-9.]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """The value of an option in a directive, and the line that holds it."""

    value: str
    line: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A Python program that the script starts: its path with the known variables replaced, and the command."""

    path: str
    command: Command


@dataclass(slots=True, kw_only=True)
class JobScript:
    """A job script: its directives, its command lines and its variables."""

    name: str
    text: str
    scheduler: SchedulerName = "none"
    interpreter: str = ""
    """The name of the program behind `#!`, such as `bash`; empty if the first line does not name one."""
    options: dict[str, Option] = field(default_factory=dict)
    late: list[Line] = field(default_factory=list)
    comments: list[Line] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    variables: dict[str, tuple[str, int, bool]] = field(default_factory=dict)
    """Each name with its value, its line, and whether it is exported."""

    @property
    def is_python(self) -> bool:
        """Whether Python runs the script itself."""
        return self.interpreter.startswith("python")

    @property
    def is_sh(self) -> bool:
        """Whether a shell with the syntax of sh runs the script."""
        return self.interpreter in (*SHELLS, "")

    def number(self, key: str) -> int | None:
        """The whole number that a directive gives; None if there is none."""
        option = self.options.get(key)
        return whole_number(option.value) if option else None

    def value(self, *keys: str) -> str | None:
        """The value of the first of these options that the script has."""
        return next((self.options[key].value for key in keys if key in self.options), None)

    @property
    def requests_gpus(self) -> bool:
        """Whether a directive or a launcher requests GPUs."""
        words = [
            word for line, _, words in self.started() for word in words if word.startswith(("--gpus", "--gres", "-G"))
        ]
        gres = self.value("gres") or ""
        return gpus_of(self) > 0 or bool(words) or "gpu" in gres or any(key.startswith("gpus") for key in self.options)

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
        seen: set[int] = set()
        for command in self.commands:
            if command.launcher is not None and command.line.number not in seen:
                seen.add(command.line.number)
                yield command.line, *command.launcher

    def modules(self) -> Iterator[tuple[Line, str]]:
        """Every module that the script loads, with its line."""
        for command in self.commands:
            words = [word for word in command.words if not word.startswith("-")]
            if words[:2] in (["module", "load"], ["module", "add"], ["module", "swap"], ["module", "switch"]):
                names = words[2:] if words[1] in ("load", "add") else words[-1:]
                yield from ((command.line, name) for name in names)
            elif words[:1] == ["ml"] and words[1:2] in (["load"], ["add"]):
                yield from ((command.line, name) for name in words[2:])
            elif words[:1] == ["ml"] and words[1:2] not in (
                ["purge"],
                ["reset"],
                ["list"],
                ["use"],
                ["unload"],
                ["swap"],
            ):
                yield from ((command.line, name) for name in words[1:])

    def does(self, *words: str) -> int | None:
        """The line of the first command that begins with these words, not counting options between them."""
        for command in self.commands:
            plain = [word for word in command.words if not word.startswith("-")]
            if tuple(plain[: len(words)]) == words:
                return command.line.number
        return None

    def starts(self) -> tuple[Start, ...]:
        """The Python programs that the script starts, in order; without `-c` and `-m`, whose programs are no files."""
        if self.is_python:
            return ()
        found, folder = [], ""
        for command in self.commands:
            if command.name == "cd" and len(command.words) > 1:
                folder = _below(folder, self.filled(command.words[1]))
            path = _program(command)
            if path is not None:
                found.append(Start(path=_below(folder, self.filled(path)), command=command))
        return tuple(found)

    def main(self) -> Start | None:
        """The program that is taken to be the training script: the first that a launcher starts, or else the first."""
        starts = self.starts()
        return next((start for start in starts if start.command.launcher), next(iter(starts), None))

    def program(self) -> str | None:
        """The path of the training script, with the known variables replaced; None if the script starts none."""
        start = self.main()
        return start.path if start else None

    def filled(self, text: str) -> str:
        """The text, with the variables that the script sets replaced by their values."""
        for _ in range(5):
            before = text
            text = VARIABLE.sub(self._value, text)
            if text == before or len(text) > 4096:
                break
        return text

    def _value(self, match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name in FOLDERS:
            return "."
        if name in self.variables:
            return self.variables[name][0]
        return match[0] if match[3] is None else match[3]


def _below(folder: str, path: str) -> str:
    """A path as it is seen from the folder of the script."""
    path = re.sub(r"^(?:\./)+", "", path) or "."
    if not folder or path.startswith(("/", "~", "$")):
        return path
    return folder if path == "." else f"{folder.rstrip('/')}/{path}"


def _program(command: Command) -> str | None:
    """The Python file that a command starts."""
    words = command.words
    for index, word in enumerate(words):
        if not PYTHON.fullmatch(word) and base(word) not in ("$PYTHON", "${PYTHON}"):
            continue
        rest = iter(words[index + 1 :])
        for after in rest:
            if after in ("-c", "-m", "-", "-V", "--version"):
                return None
            if after in ("-W", "-X"):
                next(rest, None)
            elif not after.startswith("-"):
                return after if not after.startswith(("<", ">", "/dev/")) else None
        return None
    runs = command.launcher[1] if command.launcher else words[:1]
    return next((word for word in runs if word.endswith(".py") and "=" not in word), None)


def fault(script: JobScript, rule: str, line: Line | tuple[int, str], message: str, fix: str) -> Finding:
    """A finding at a line of a job script."""
    number, text = (line.number, line.text) if isinstance(line, Line) else line
    shown = text if len(text) <= 300 else f"{text[:300]}…"
    return Finding(
        rule=rule, file=script.name, line=number, message=message, evidence=shown.replace("\n", " "), fix=fix
    )


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
    script = JobScript(name=name, text=text, interpreter=_interpreter(text))
    begun, last_for_cobalt = False, _read_by_cobalt(text)
    for line in read_lines(text):
        prefix = next((prefix for prefix in PREFIXES if line.text.startswith((f"{prefix} ", f"{prefix}\t"))), None)
        if prefix is None:
            if line.text.startswith("#"):
                script.comments.append(line)
            elif line.text:
                begun = True
                if not script.is_python:
                    script.lines.append(line)
                    script.commands.extend(read_commands(line))
                    _assign(script, line)
            continue
        script.scheduler = PREFIXES[prefix]
        # PBS reads indented directives (OpenPBS 23.06, check_job_script.c), but sbatch does not (Slurm 25.05, sbatch/opt.c).
        indented = script.scheduler == "slurm" and script.is_indented(line)
        if line.number > last_for_cobalt if script.scheduler == "cobalt" else begun or indented:
            script.late.append(line)
            continue
        for key, value in read_options(line.text.removeprefix(prefix), script.scheduler):
            script.options[key] = Option(value=value, line=line.number, text=line.text)
    return script


def _interpreter(text: str) -> str:
    """The program behind `#!` in the first line."""
    words = text[:300].split("\n", 1)[0].split() if text.startswith("#!") else []
    words = "".join(words[:1])[2:].split() + words[1:] or [""]
    words = [word for word in words if not word.startswith("-")] or [""]
    return base(words[1] if base(words[0]) == "env" and len(words) > 1 else words[0])


def _read_by_cobalt(text: str) -> int:
    """The last line that Cobalt's qsub reads: it stops at the first line behind `#!` that is not a directive (1.0.33)."""
    lines = text.splitlines()
    if not text.startswith("#!"):
        return 0
    return next((number for number, line in enumerate(lines) if number and not line.startswith("#COBALT ")), len(lines))


def _assign(script: JobScript, line: Line) -> None:
    words = line.words
    exported = words[:1] == ("export",) or words[:2] == ("declare", "-x")
    if words[:1] == ("setenv",) and len(words) == 3:
        script.variables[words[1]] = (words[2], line.number, True)
        return
    for word in words[1:] if exported else words:
        assignment = ASSIGNMENT.fullmatch(word)
        if assignment:
            script.variables[assignment[1]] = (assignment[2], line.number, exported)
        elif exported and word in script.variables:
            script.variables[word] = (*script.variables[word][:2], True)
        elif not exported:
            break
