"""Reads a job script: its directives, modules, variables, and the commands that start programs.

The script is read as text, not run. Variables that the script sets to plain text are replaced, and so are those of the
folder of the script; all others stay as they are.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from provision.knowledge.whole_numbers import whole_number
from provision.lint.directive_options import read_options
from provision.lint.imports import parse
from provision.lint.shell_lines import (
    ASSIGNMENT,
    PYTHON,
    ShellCommand,
    ShellLine,
    base,
    read_commands,
    read_lines,
)
from provision.profile.scheduler import SchedulerName

PREFIXES: dict[str, SchedulerName] = {"#SBATCH": "slurm", "#PBS": "pbs", "#COBALT": "cobalt"}
# The folder from which the job was submitted, which is taken to be that of the script.
FOLDERS = ("PWD", "SLURM_SUBMIT_DIR", "PBS_O_WORKDIR", "COBALT_STARTDIR")
VARIABLE = re.compile(r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)(?::?-([^${}]*))?\})")
# Modules that run the program that is named behind them.
RUN_PROGRAMS = ("mpi4py", "mpi4py.run", "torch.distributed.run", "torch.distributed.launch")
# Programs that start the program that is named behind them in several processes.
STARTERS = ("torchrun", "accelerate", "deepspeed")
TOP = ShellLine(number=1, text="")
"""The place of what the whole script lacks."""


@dataclass(frozen=True, kw_only=True)
class Setting(ShellLine):
    """The line that sets an option in a directive, or a variable, and the value."""

    value: str
    exported: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A Python program that the script starts: its path with the known variables replaced, and the command."""

    path: str
    command: ShellCommand


@dataclass(kw_only=True)
class JobScript:
    """A job script: its directives, its command lines and its variables; of a heterogeneous job the first component's."""

    name: str
    text: str
    scheduler: SchedulerName = "none"
    interpreter: str = ""
    """The name of the program behind `#!`, such as `bash`; empty if the first line does not name one."""
    options: dict[str, Setting] = field(default_factory=dict)
    late: list[ShellLine] = field(default_factory=list)
    comments: list[ShellLine] = field(default_factory=list)
    lines: list[ShellLine] = field(default_factory=list)
    commands: list[ShellCommand] = field(default_factory=list)
    variables: dict[str, Setting] = field(default_factory=dict)
    beside: frozenset[str] = frozenset()
    """Those of `module_files` that exist."""

    @property
    def is_python(self) -> bool:
        """Whether Python runs the script itself."""
        return self.interpreter.startswith("python")

    def number(self, *keys: str) -> int | None:
        """The whole number that the first of these options gives; None if there is none."""
        return next((whole_number(self.options[key].value) for key in keys if key in self.options), None)

    def value(self, *keys: str) -> str | None:
        """The value of the first of these options that the script has."""
        return next((self.options[key].value for key in keys if key in self.options), None)

    def line_of(self, *keys: str) -> ShellLine:
        """The line of the first of these options that the script has, or its first line if it has none of them."""
        return next((self.options[key] for key in keys if key in self.options), TOP)

    def set_to(self, name: str) -> str:
        """The value that the script gives to a variable; empty if it gives none."""
        return self.variables[name].value if name in self.variables else ""

    @cached_property
    def nodes(self) -> int:
        """The nodes that the script requests, the least of `--nodes=2-4`; 1 if it does not say it."""
        return self.number("nodes") or whole_number((self.value("nodes") or "").partition("-")[0]) or 1

    @cached_property
    def tasks(self) -> int | None:
        """The total number of tasks that the script requests; None if it does not give it."""
        each = self.number("ntasks-per-node", "tasks-per-node")
        if (
            each is None
            and not {"ntasks", "gpus-per-task"} & set(self.options)
            and (by_gpu := self.number("ntasks-per-gpu"))
        ):
            return by_gpu * self.gpus * self.nodes or None
        return self.number("ntasks") if each is None else each * self.nodes

    @cached_property
    def ranks_per_node(self) -> int:
        """The tasks on each node, as far as the script gives them: 1 if the scheduler may put each task on another node."""
        each = self.number("ntasks-per-node", "tasks-per-node")
        if each is None:
            return 1 if self.number("nodes") is None else max(1, (self.tasks or 1) // self.nodes)
        return each

    @cached_property
    def gpus(self) -> int:
        """The GPUs that the script requests on each node, as far as it gives them; 0 means none."""
        for key, share in (("gres", 1), ("gpus-per-node", 1), ("gpus", self.nodes), ("gpus-per-task", 0)):
            value = self.value(key) or ""
            count = re.search(r"(?<!\d)(\d{1,15})$", value)
            if count and (key != "gres" or value.startswith("gpu")):
                return max(1, int(count[1]) // share) if share else int(count[1]) * self.ranks_per_node
            if key == "gres" and value == "gpu":
                return 1
        return 0

    @cached_property
    def requests_gpus(self) -> bool:
        """Whether a directive or a launcher requests GPUs."""
        by_launcher = any(re.search(r"(^| )(--gpus|--gres|-G)", launch.options) for launch in self.launches)
        by_option = any(key.startswith("gpus") for key in self.options) or "gpu" in (self.value("gres") or "")
        return self.gpus > 0 or by_launcher or by_option

    def is_indented(self, line: ShellLine) -> bool:
        """Whether white space stands before this line."""
        return self.text.split("\n")[line.number - 1][:1].isspace()

    @cached_property
    def launches(self) -> tuple[ShellCommand, ...]:
        """The commands that start ranks, one of each line."""
        last_first = (command for command in reversed(self.commands) if command.launcher)
        return tuple(reversed({command.line.number: command for command in last_first}.values()))

    @cached_property
    def modules(self) -> tuple[tuple[ShellLine, str], ...]:
        """Every module that the script loads, with its line."""
        return tuple((command.line, name) for command in self.commands for name in loaded_by(command.plain))

    @cached_property
    def unset(self) -> set[str]:
        """The variables that the script unsets."""
        return {word for command in self.commands if command.name == "unset" for word in command.words[1:]}

    @property
    def proxies(self) -> set[str]:
        """The proxies to the internet that the script sets, in lower case."""
        return {name.lower() for name in self.variables} & {"http_proxy", "https_proxy", "all_proxy"}

    def does(self, *words: str) -> int | None:
        """The line of the first command that begins with these words, not counting options between them."""
        lines = (command.line.number for command in self.commands if command.plain[: len(words)] == words)
        return next(lines, None)

    def starts(self) -> tuple[Start, ...]:
        """The Python programs that the script starts, in order; of modules (`-m`) those whose files are beside it."""
        return tuple(start for start, of_module in self._starts() if not of_module or start.path in self.beside)

    def module_files(self) -> tuple[str, ...]:
        """The files in which the modules would be that the script starts with `-m`."""
        return tuple(start.path for start, of_module in self._starts() if of_module)

    def _starts(self) -> Iterator[tuple[Start, bool]]:
        """What may be a start of a program, and whether it is one of a module."""
        folder = ""
        for command in self.commands:
            if command.name == "cd" and len(command.words) > 1:
                folder = _below(folder, self.filled(command.words[1]))
            path = _program(command) or ""
            module = path.removeprefix("-m ") if path.startswith("-m ") else None
            stem = self.filled(path) if module is None else self.filled(module).replace(".", "/")
            for end in ("",) if module is None else (".py", "/__main__.py"):
                if stem:
                    yield Start(path=_below(folder, stem + end), command=command), module is not None

    def main(self) -> Start | None:
        """The program that is taken to be the training script: the first that a launcher starts, or else the first."""
        starts = self.starts()
        return next((start for start in starts if start.command.launcher), next(iter(starts), None))

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
            return self.variables[name].value
        return match[0] if match[3] is None else match[3]


def loaded_by(words: tuple[str, ...]) -> tuple[str, ...]:
    """The modules that a command without its options loads."""
    program, verb = words[:1], words[1:2]
    if program == ("ml",) and verb not in (("purge",), ("reset",), ("list",), ("use",), ("unload",), ("swap",)):
        return words[2:] if verb in (("load",), ("add",)) else words[1:]
    if program == ("module",) and verb in (("load",), ("add",)):
        return words[2:]
    return words[2:][-1:] if program == ("module",) and verb in (("swap",), ("switch",)) else ()


def _below(folder: str, path: str) -> str:
    """A path as it is seen from the folder of the script."""
    path = re.sub(r"^(?:\./)+", "", path) or "."
    if not folder or path.startswith(("/", "~", "$")):
        return path
    return folder if path == "." else f"{folder.rstrip('/')}/{path}"


def _program(command: ShellCommand) -> str | None:
    """The Python file that a command starts, or `-m` with the name of the module."""
    words = command.words
    for index, word in enumerate(words):
        if not PYTHON.fullmatch(word) and base(word) not in ("$PYTHON", "${PYTHON}"):
            continue
        rest = iter(words[index + 1 :])
        for after in rest:
            if after == "-m":
                module = next(rest, "")
                if module not in RUN_PROGRAMS:
                    return f"-m {module}" if module.replace(".", "").isidentifier() else None
                named = [word for word in rest if word.endswith(".py") or word.startswith("$")]
                return next((word for word in named if word.endswith(".py")), next(iter(named), None))
            if after in ("-c", "-", "-V", "--version"):
                return None
            if after in ("-W", "-X"):
                next(rest, None)
            elif not after.startswith("-"):
                return after if not after.startswith(("<", ">", "/dev/")) else None
        return None
    starter = next((place for place, word in enumerate(words) if base(word) in STARTERS), len(words))
    behind = words[starter:] if words[0] not in ("echo", "printf") else ()
    runs = command.launched[1:] or behind or words[:1]
    return next((word for word in runs if word.endswith(".py") and "=" not in word), None)


def read_script(text: str, name: str) -> JobScript:
    """The script in this text. Reading never fails: the rules report everything that is wrong."""
    script = JobScript(name=name, text=text, interpreter=_interpreter(text))
    begun, first_component, last_for_cobalt = False, True, _read_by_cobalt(text)
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
        if script.scheduler == "slurm" and line.text.split()[1] in ("hetjob", "packjob"):
            first_component = False
        for key, value in read_options(line.text.removeprefix(prefix), script.scheduler) if first_component else ():
            script.options[key] = Setting(value=value, number=line.number, text=line.text)
    return script


def _interpreter(text: str) -> str:
    """The program behind `#!` in the first line."""
    words = text[2:300].split("\n", 1)[0].split() if text.startswith("#!") else []
    words = [word for word in words if not word.startswith("-")] or [""]
    return base(words[1] if base(words[0]) == "env" and len(words) > 1 else words[0])


def _read_by_cobalt(text: str) -> int:
    """The last line that Cobalt's qsub reads: it stops at the first line behind `#!` that is not a directive (1.0.33)."""
    lines = text.split("\n") if text.startswith("#!") else []
    return next((number for number, line in enumerate(lines) if number and not line.startswith("#COBALT ")), len(lines))


def _assign(script: JobScript, line: ShellLine) -> None:
    words = line.words
    exported = words[:1] == ("export",) or words[:2] == ("declare", "-x")
    if words[:1] == ("setenv",) and len(words) == 3:
        exported, words = True, ("export", f"{words[1]}={words[2]}")
    for word in words[1:] if exported else words:
        assignment = ASSIGNMENT.fullmatch(word)
        if assignment:
            name, value = assignment.groups()
            script.variables[name] = Setting(number=line.number, text=word, value=value, exported=exported)
        elif exported and word in script.variables:
            script.variables[word] = replace(script.variables[word], exported=True)
        elif not exported:
            break


def is_program(text: str, name: str) -> bool:
    """Whether this text is a Python program and no job script. A program with directives is a job script that Python runs."""
    if re.search(r"^[ \t]*#(SBATCH|PBS|COBALT)[ \t]", text, re.MULTILINE):
        return False
    if text.startswith("#!"):
        return "python" in text.split("\n", 1)[0]
    tree = parse(text) if name == "-" else None
    defines = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)
    return name.endswith(".py") or (
        isinstance(tree, ast.Module) and any(isinstance(node, defines) for node in tree.body)
    )
