"""A training script with the modules beside it, and what several rules ask about it."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from provision.lint import Finding
from provision.lint.syntax import TRAINS, Script
from provision.lint.together import Together, uses_horovod


class Download(NamedTuple):
    """Something that a script fetches from the internet unless it is there already."""

    line: int
    what: str
    fetch: str
    """A command that fetches it beforehand, in Python."""
    name: str | None = None
    """The name with which `provision data fetch` fetches it; None if it cannot."""


@dataclass(kw_only=True)
class Training:
    """A training script with the modules beside it: what they use, and the faults of the script."""

    file: str
    source: tuple[str, ...]
    scripts: tuple[Script, ...]
    """The syntax tree of the training script, then those of the modules."""
    error: Exception | None = None
    """Why the script has no syntax tree."""
    together: Together = field(default_factory=Together)
    """What they use to work together with other processes, and what may hide it."""
    downloads: tuple[Download, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def script(self) -> Script:
        """The syntax tree of the training script."""
        return self.scripts[0]

    def row(self, line: int) -> str:
        """A line of the training script."""
        return self.source[line - 1].strip() if 0 < line <= len(self.source) else ""

    @property
    def horovod(self) -> bool:
        """Whether it uses Horovod."""
        return "horovod" in self.together.uses

    @property
    def multiworker(self) -> bool:
        """Whether it uses MultiWorkerMirroredStrategy."""
        return "multiworker" in self.together.uses

    @property
    def mirrored(self) -> bool:
        """Whether it uses MirroredStrategy, and not the one of several workers."""
        return "mirrored" in self.together.uses and not self.multiworker

    @property
    def multiworker_by_slurm(self) -> bool:
        """Whether it asks Slurm for the workers of MultiWorkerMirroredStrategy."""
        return self.multiworker and "SlurmClusterResolver" in self.names

    @cached_property
    def names(self) -> set[str]:
        """All names, attributes and names of arguments in the code."""
        return set().union(*(script.names | script.keywords for script in self.scripts))

    @cached_property
    def texts(self) -> set[str]:
        """All texts in the code."""
        return set().union(*(script.texts for script in self.scripts))

    @cached_property
    def called(self) -> set[str]:
        """The names of all functions that are called."""
        return set().union(*(script.called for script in self.scripts))

    @cached_property
    def modules(self) -> set[str]:
        """The first parts of the names of all imported modules."""
        return {name.partition(".")[0] for script in self.scripts for name in script.modules}

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
