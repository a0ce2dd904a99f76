"""Reads a training script from its syntax tree: what it uses, and the faults that it has whatever job starts it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from provision.lint import Finding
from provision.lint.data_rules import Download, downloads, input_faults, unsplit_fault
from provision.lint.horovod_rules import (
    horovod_faults,
    read_imports,
    unimported_fault,
    whole_faults,
    writer_faults,
)
from provision.lint.imports import parse
from provision.lint.path_rules import path_faults
from provision.lint.strategy_rules import strategy_faults
from provision.lint.syntax import TRAINS, Fault, Script, last
from provision.lint.tensorflow_rules import Needs, callback_faults, fixed_threads, needs, session_faults
from provision.lint.together import Together, read_together


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """A training script with the modules beside it: what they use, and the faults of the script."""

    file: str
    together: Together = field(default_factory=Together)
    """What they use to work together with other processes, and what may hide it."""
    multiworker_by_slurm: bool = False
    """Whether it asks Slurm for the workers of MultiWorkerMirroredStrategy."""
    multi_gpu: bool = False
    """Whether it uses several GPUs or processes in any way that is known: a strategy, MPI, PyTorch."""
    uses_tensorflow: bool = False
    trains: int | None = None
    """The first line that trains, 1 if it is in a module beside the script; None if there is none."""
    has_session: bool = False
    chooses_gpu: bool = False
    """Whether it chooses the GPUs that it uses."""
    reads_threads: bool = True
    picks_gpu_by_local_rank: int | None = None
    """The line that takes a GPU from a list with `local_rank()` or SLURM_LOCALID."""
    reads_slurm: int | None = None
    """The first line that names one of Slurm's rank variables."""
    sets_openmp: tuple[int, str] | None = None
    """The line that sets a variable of OpenMP, and the variable."""
    threads: tuple[int, int, int] | None = None
    """The line, inter and intra of thread pools of fixed sizes."""
    downloads: tuple[Download, ...] = ()
    needs: Needs
    findings: tuple[Finding, ...]

    @property
    def horovod(self) -> bool:
        """Whether it uses Horovod."""
        return "horovod" in self.together.uses

    @property
    def mirrored(self) -> bool:
        """Whether it uses MirroredStrategy, and not the one of several workers."""
        return "mirrored" in self.together.uses and not self.multiworker

    @property
    def multiworker(self) -> bool:
        """Whether it uses MultiWorkerMirroredStrategy."""
        return "multiworker" in self.together.uses


def read_training(text: str, file: str, beside: Mapping[str, str] | None = None) -> Training:
    """The training script in this text. A text that is not Python 3 is a script with one finding.

    `beside` are the texts of the modules that it imports from its folder, by their paths.
    """
    tree = parse(text)
    if not isinstance(tree, ast.Module):
        return Training(file=file, needs=needs(Script(ast.Module([], []))), findings=(_no_python(text, file, tree),))
    trees = {path: parse(other) for path, other in (beside or {}).items()}
    modules = {path: Script(other) for path, other in trees.items() if isinstance(other, ast.Module)}
    return _Reader(Script(tree), text, file, modules).read()


def _no_python(text: str, file: str, error: Exception) -> Finding:
    line = getattr(error, "lineno", None) or 1
    rows = text.splitlines()
    row = rows[line - 1] if line <= len(rows) else ""
    old = re.match(r"\s*(print\s+[^(=]|except [\w.]+, \w+:|raise \w+, )", row) is not None
    return Finding(
        rule="no-python",
        file=file,
        line=line,
        message="this is Python 2, for which neither TensorFlow nor pip is maintained"
        if old
        else "this is not valid Python 3",
        evidence=str(getattr(error, "msg", error)) or "it is too deeply nested",
        fix=f"`2to3 -w {file}` converts most of it" if old else f"`python3 -m py_compile {file}` shows the error",
    )


class _Reader:
    """Reads one syntax tree, and knows the names under which the script imports Horovod."""

    def __init__(self, script: Script, text: str, file: str, beside: Mapping[str, Script]) -> None:
        self.script, self.nodes = script, script.nodes
        self.source, self.file = text.splitlines(), file
        self.aliases, self.imported = read_imports(script)
        self.together = read_together({file: script, **beside})
        self.scripts = (script, *beside.values())
        self.names: set[str] = set().union(*(one.names for one in self.scripts))
        self.texts: set[str] = set().union(*(one.texts for one in self.scripts))
        self.called: set[str] = set().union(*(one.called for one in self.scripts))
        self.keywords: set[str] = set().union(*(one.keywords for one in self.scripts))
        self.modules = {name.partition(".")[0] for one in self.scripts for name in one.modules}

    def read(self) -> Training:
        """The training script: what it uses, and its faults."""
        others = self.modules & {"mpi4py", "torch", "dask", "ray", "deepspeed", "mesh_tensorflow", "ml_comm", "jax"}
        lines = [call.lineno for call in self.script.calls if last(call) in TRAINS]
        return Training(
            file=self.file,
            together=self.together,
            multiworker_by_slurm="multiworker" in self.together.uses and "SlurmClusterResolver" in self.names,
            multi_gpu=bool(others) or any(name.endswith("Strategy") for name in self.names),
            uses_tensorflow=bool(self.modules & {"tensorflow", "keras", "horovod"}),
            trains=min(lines, default=1 if self.called & set(TRAINS) else None),
            has_session=bool({"Session", "MonitoredTrainingSession", "ConfigProto"} & self.names),
            chooses_gpu=bool({"set_visible_devices", "visible_device_list", "device"} & (self.names | self.keywords))
            or "CUDA_VISIBLE_DEVICES" in self.texts,
            reads_threads=bool({"NUM_INTER_THREADS", "NUM_INTRA_THREADS"} & self.texts)
            or any("intra_op_parallelism_threads" in name for name in self.names | self.keywords),
            picks_gpu_by_local_rank=self._picks_gpu(),
            reads_slurm=min(
                (node.lineno for node in self.nodes if isinstance(node, ast.Constant) and _is_slurm(node)), default=None
            ),
            sets_openmp=self._sets_openmp(),
            threads=fixed_threads(self.script),
            downloads=downloads(self.script),
            needs=needs(self.script),
            findings=tuple(sorted(self._findings(), key=lambda finding: finding.line)),
        )

    def _picks_gpu(self) -> int | None:
        lines = [
            node.lineno
            for node in self.nodes
            if isinstance(node, ast.Subscript)
            and not self._is_environ(node.value)
            and not any(isinstance(part, ast.IfExp | ast.Mod) for part in ast.walk(node.slice))  # it counts the GPUs
            and any(
                (isinstance(part, ast.Attribute) and part.attr == "local_rank")
                or (isinstance(part, ast.Constant) and part.value == "SLURM_LOCALID")
                for part in ast.walk(node.slice)
            )
        ]
        return min(lines, default=None)

    def _sets_openmp(self) -> tuple[int, str] | None:
        for node in self.nodes:
            if not isinstance(node, ast.Assign | ast.Call):
                continue
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            if isinstance(target, ast.Subscript) and self._is_environ(target.value):
                key = target.slice
            elif isinstance(node, ast.Call) and last(node) in ("putenv", "setdefault") and node.args:
                key = node.args[0]
            else:
                continue
            if isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value.startswith(("OMP_", "KMP_")):
                return node.lineno, key.value
        return None

    @staticmethod
    def _is_environ(node: ast.expr) -> bool:
        return isinstance(node, ast.Attribute) and node.attr == "environ"

    def _finding(self, rule: str, line: int, message: str, fix: str) -> Finding:
        shown = self.source[line - 1].strip() if 0 < line <= len(self.source) else ""
        return Finding(rule=rule, file=self.file, line=line, message=message, evidence=shown[:300], fix=fix)

    def _findings(self) -> Iterator[Finding]:
        for fault in self._faults():
            yield self._finding(fault.rule, fault.line, fault.message, fault.fix)

    def _faults(self) -> Iterator[Fault]:
        script = self.script
        of_tensorflow = any(
            module.startswith(("horovod.tensorflow", "horovod.keras"))
            for one in self.scripts
            for imported in one.imports
            for module in imported.modules
        )
        if "horovod" in self.together.uses and of_tensorflow and self.together.is_whole and script.runs:
            yield from whole_faults(self.scripts, self.aliases, self.imported or 1)
        if self.imported is not None:
            yield from horovod_faults(script, self.aliases)
            yield from writer_faults(script)
            yield from unsplit_fault(script, self.aliases)
        yield from unimported_fault(script)
        yield from session_faults(script)
        yield from callback_faults(script)
        yield from input_faults(script)
        yield from strategy_faults(script)
        for node in self.nodes:
            if isinstance(node, ast.Compare):
                yield from self._compared(node)
        yield from path_faults(script)
        yield from self._softmax()

    def _softmax(self) -> Iterator[Fault]:
        words = [node for node in self.nodes if isinstance(node, ast.keyword) and isinstance(node.value, ast.Constant)]
        softmax = [word for word in words if word.arg == "activation" and word.value.value == "softmax"]  # type: ignore[attr-defined]
        logits = [word for word in words if word.arg == "from_logits" and word.value.value is True]  # type: ignore[attr-defined]
        # A loss in one class is not that of a model in another one.
        logits = [word for word in logits if any(self._class(word) in (None, self._class(end)) for end in softmax)]
        if logits:
            yield Fault(
                "softmax-twice",
                logits[0].value.lineno,
                "the model ends with softmax, and the loss applies softmax again",
                "remove `activation='softmax'` or `from_logits=True`",
            )

    def _class(self, node: ast.AST) -> ast.AST | None:
        """The class in which a node is."""
        return next((outer for outer in self.script.around(node) if isinstance(outer, ast.ClassDef)), None)

    def _compared(self, node: ast.Compare) -> Iterator[Fault]:
        """Comparisons of a variable of the environment, which is text, with a number: they are never equal."""
        sides = [node.left, *node.comparators]
        texts = [side for side in sides if self._from_environ(side)]
        numbers = [
            side
            for side in sides
            if isinstance(side, ast.Constant) and isinstance(side.value, int) and not isinstance(side.value, bool)
        ]
        if texts and numbers:
            yield Fault(
                "text-is-no-number",
                node.lineno,
                "a variable of the environment is text, which is never equal to a number",
                "`int(os.environ[…])`",
            )

    def _from_environ(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Subscript):
            return self._is_environ(node.value)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            # `get` with a default that is a number may give that number.
            default = node.args[1] if len(node.args) > 1 else None
            of_environ = node.func.attr == "getenv" or (node.func.attr == "get" and self._is_environ(node.func.value))
            return of_environ and (
                default is None
                or (isinstance(default, ast.Constant) and (default.value is None or isinstance(default.value, str)))
            )
        return False


def _is_slurm(node: ast.Constant) -> bool:
    return node.value in ("SLURM_PROCID", "SLURM_LOCALID")
