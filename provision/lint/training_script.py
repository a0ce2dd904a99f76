"""A training script with the modules beside it, and what several rules ask about it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from provision.lint.syntax import TRAINS, ShellScript
from provision.lint.together import APART, doubts, unread, uses, uses_horovod


class Download(NamedTuple):
    """Something that a script fetches from the internet unless it is there already."""

    line: int
    what: str
    fetch: str
    """A command that fetches it beforehand, in Python."""
    name: str | None = None
    """The name with which `provision data fetch` fetches it; None if it cannot."""


@dataclass(kw_only=True)
class TrainingProgram:
    """A training script with the modules beside it, and what they use."""

    file: str
    source: tuple[str, ...]
    scripts: dict[str, ShellScript]
    """The syntax tree of the training script, then those of the modules, by their paths."""
    error: Exception | None = None
    """Why the script has no syntax tree."""
    downloads: tuple[Download, ...] = ()

    @property
    def script(self) -> ShellScript:
        """The syntax tree of the training script."""
        return self.scripts[self.file]

    def row(self, line: int) -> str:
        """A line of the training script."""
        return self.source[line - 1].strip() if 0 < line <= len(self.source) else ""

    @cached_property
    def uses(self) -> set[str]:
        """The kinds of jobs whose way of training it uses, and names of other ways to train with several processes."""
        return {name for script in self.scripts.values() for name in uses(script)}

    @cached_property
    def doubts(self) -> tuple[str, ...]:
        """Why it may train together in a way that was not seen; the first is the clearest."""
        found = (
            f"line {line} of `{file}` {what}"
            for file, script in self.scripts.items()
            for line, what in (*unread(script, file, self.scripts), *doubts(script))
        )
        return tuple(dict.fromkeys(found))

    @property
    def apart(self) -> bool:
        """Whether words of the code let each process have its own work on purpose."""
        words = (word for one in self.scripts.values() for word in (*one.names, *one.texts, *one.modules))
        return any(APART.search(word) for word in words)

    @property
    def is_whole(self) -> bool:
        """Whether every part of the program was read, apart from packages that are known to hold none."""
        return not any(True for file, script in self.scripts.items() for _ in unread(script, file, self.scripts))

    @property
    def horovod(self) -> bool:
        """Whether it uses Horovod."""
        return "horovod" in self.uses

    @property
    def multiworker(self) -> bool:
        """Whether it uses MultiWorkerMirroredStrategy."""
        return "multiworker" in self.uses

    @property
    def mirrored(self) -> bool:
        """Whether it uses MirroredStrategy, and not the one of several workers."""
        return "mirrored" in self.uses and not self.multiworker

    @property
    def multiworker_by_slurm(self) -> bool:
        """Whether it asks Slurm for the workers of MultiWorkerMirroredStrategy."""
        return self.multiworker and "SlurmClusterResolver" in self.names

    @cached_property
    def names(self) -> set[str]:
        """All names, attributes and names of arguments in the code."""
        return set().union(*(script.names | script.keywords for script in self.scripts.values()))

    @cached_property
    def texts(self) -> set[str]:
        """All texts in the code."""
        return set().union(*(script.texts for script in self.scripts.values()))

    @cached_property
    def called(self) -> set[str]:
        """The names of all functions that are called."""
        return set().union(*(script.called for script in self.scripts.values()))

    @cached_property
    def modules(self) -> set[str]:
        """The first parts of the names of all imported modules."""
        return {name.partition(".")[0] for script in self.scripts.values() for name in script.modules}

    @property
    def uses_torch(self) -> bool:
        """Whether it uses PyTorch, and not TensorFlow beside it."""
        return "torch" in self.modules and not self.modules & {"tensorflow", "keras"}

    @property
    def ddp(self) -> bool:
        """Whether the processes of PyTorch train together."""
        return "ddp" in self.uses

    @property
    def uses_tensorflow(self) -> bool:
        """Whether it uses TensorFlow, itself or through Keras or Horovod."""
        return bool(self.modules & {"tensorflow", "keras", "horovod"})

    @cached_property
    def trains(self) -> int | None:
        """The first line that trains, 1 if it is in a module beside the script; None if there is none."""
        lines = [call.lineno for call in self.script.calls_of(*TRAINS)]
        return min(lines, default=1 if self.called & set(TRAINS) else None)

    @cached_property
    def aliases(self) -> dict[str, int]:
        """The names under which the script imports Horovod, with the lines."""
        if any(name.startswith(("horovod.spark", "horovod.ray", "pyspark")) for name in self.script.modules):
            return {}  # an estimator of Horovod trains, and does by itself what the rules ask for
        aliases: dict[str, int] = {}
        for node in self.script.nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                of = f"{node.module}." if isinstance(node, ast.ImportFrom) and not node.level else ""
                used = (alias for alias in node.names if uses_horovod(f"{of}{alias.name}"))
                aliases.update({alias.asname or alias.name: node.lineno for alias in used})
        return aliases
