"""Reads a training script from its syntax tree: what it uses, and the faults that it has whatever job starts it."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from provision.lint import Finding
from provision.lint.data_rules import Download, downloads, input_faults, unsplit_fault
from provision.lint.horovod_rules import (
    TRAINS,
    horovod_faults,
    read_imports,
    unimported_fault,
    writer_faults,
)
from provision.lint.path_rules import path_faults
from provision.lint.strategy_rules import strategy_faults
from provision.lint.syntax import Fault, Script, last
from provision.lint.tensorflow_rules import Needs, callback_faults, fixed_threads, needs, session_faults

# Modules that a script may import without working together with other ranks by them.
PLAIN = (
    *(
        "__future__",
        "absl",
        "argparse",
        "atexit",
        "collections",
        "contextlib",
        "copy",
        "csv",
        "dataclasses",
        "datetime",
    ),
    *("enum", "functools", "gc", "glob", "gzip", "h5py", "itertools", "json", "keras", "logging", "math", "matplotlib"),
    *(
        "numpy",
        "operator",
        "os",
        "pandas",
        "pathlib",
        "pickle",
        "platform",
        "pprint",
        "psutil",
        "random",
        "re",
        "scipy",
    ),
    *(
        "shutil",
        "signal",
        "sklearn",
        "socket",
        "string",
        "struct",
        "sys",
        "tempfile",
        "tensorflow",
        "tensorflow_datasets",
        "textwrap",
        "time",
    ),
    *("timeit", "tqdm", "traceback", "types", "typing", "urllib", "warnings", "yaml", "zipfile"),
)
# Words in names, texts and comments of scripts that know that they are one of several.
TOGETHER = re.compile(
    r"horovod|hvd|mpi|distribute|strategy|rank|slurm|procid|world_size|worker|cluster|array|task_?id|seed|shard|grid|sweep|fold",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """A training script: what it uses, and all its faults."""

    file: str
    horovod: bool = False
    mirrored: bool = False
    multiworker: bool = False
    multiworker_by_slurm: bool = False
    """Whether it asks Slurm for the workers of MultiWorkerMirroredStrategy."""
    multi_gpu: bool = False
    """Whether it uses several GPUs or processes in any way that is known: a strategy, MPI, PyTorch."""
    uses_tensorflow: bool = False
    trains: bool = False
    has_session: bool = False
    chooses_gpu: bool = False
    """Whether it chooses the GPUs that it uses."""
    alone: int | None = None
    """The line that trains, in a script that certainly knows nothing of other ranks."""
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


def read_training(text: str, file: str) -> Training:
    """The training script in this text. A text that is not Python 3 is a script with one finding."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python prints some of what it reads, such as `"\d"`
            tree = ast.parse(text)
    # Brackets or operators, thousands deep, are too much for Python's own parser.
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return Training(file=file, needs=needs(Script(ast.Module([], []))), findings=(_no_python(text, file, error),))
    return _Reader(Script(tree), text, file).read()


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

    def __init__(self, script: Script, text: str, file: str) -> None:
        self.script, self.nodes, self.text = script, script.nodes, text
        self.source, self.file = text.splitlines(), file
        self.aliases, self.imported = read_imports(script)
        self.names = {node.attr for node in self.nodes if isinstance(node, ast.Attribute)}
        self.names |= {node.id for node in self.nodes if isinstance(node, ast.Name)}
        self.texts = {
            node.value for node in self.nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }

    def read(self) -> Training:
        """The training script: what it uses, and its faults."""
        multiworker = "MultiWorkerMirroredStrategy" in self.names
        modules = {name.partition(".")[0] for name in self.script.modules}
        others = modules & {"mpi4py", "torch", "dask", "ray", "deepspeed", "mesh_tensorflow", "ml_comm", "jax"}
        return Training(
            file=self.file,
            horovod=self.imported is not None,
            mirrored="MirroredStrategy" in self.names and not multiworker,
            multiworker=multiworker,
            multiworker_by_slurm=multiworker and "SlurmClusterResolver" in self.names,
            multi_gpu=bool(others) or any(name.endswith("Strategy") for name in self.names),
            uses_tensorflow=bool(modules & {"tensorflow", "keras", "horovod"}),
            trains=bool(self.script.called & {*TRAINS, "fit"}),
            has_session=bool({"Session", "MonitoredTrainingSession", "ConfigProto"} & self.names),
            chooses_gpu=bool({"set_visible_devices", "visible_device_list", "device"} & (self.names | self._keywords()))
            or "CUDA_VISIBLE_DEVICES" in self.texts,
            alone=self._alone(modules),
            reads_threads=bool({"NUM_INTER_THREADS", "NUM_INTRA_THREADS"} & self.texts)
            or any("intra_op_parallelism_threads" in name for name in self.names | self._keywords()),
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

    def _alone(self, modules: set[str]) -> int | None:
        """The line that trains, if nothing in the script can make ranks work together or give them different work."""
        if not modules & {"tensorflow", "keras"} or any(name.startswith(".") for name in self.script.modules):
            return None
        if not modules <= set(PLAIN) or TOGETHER.search(self.text) or "argv" in self.names:
            return None
        return min((call.lineno for call in self.script.calls if last(call) == "fit"), default=None)

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

    def _keywords(self) -> set[str]:
        return {node.arg for node in self.nodes if isinstance(node, ast.keyword) and node.arg}

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
        if self.imported is not None:
            yield from horovod_faults(script, self.aliases, self.imported)
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
