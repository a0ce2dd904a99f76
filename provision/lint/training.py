"""The rules for a training script, read from its syntax tree: faults that make each rank train alone, or believe it is rank 0.

Each rule is an error that a site page has, or that its readers made.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from provision.lint import Finding
from provision.lint.tensorflow_rules import Needs, callback_faults, input_faults, last, needs, session_faults

WRAPPERS = ("DistributedOptimizer", "DistributedGradientTape", "DistributedAdasumOptimizer")
BROADCASTS = (
    *("BroadcastGlobalVariablesHook", "BroadcastGlobalVariablesCallback", "broadcast_variables"),
    *("broadcast_global_variables", "BroadcastGlobalVariables"),
    *("KerasState", "TensorFlowState", "TensorFlowKerasState"),  # states of elastic Horovod broadcast by themselves
)
# Modules of Horovod that start programs elsewhere: a script that imports only these is not a training script.
STARTERS = ("runner", "spark", "ray")
FUNCTIONS = ("rank", "size", "local_rank", "local_size", "cross_rank", "cross_size", "init")
SLURM_NUMBERS = ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS")
SAVERS = ("ModelCheckpoint", "save", "save_weights", "TensorBoard")


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """A training script: what it uses, and all its faults."""

    file: str
    horovod: bool
    mirrored: bool
    multiworker: bool
    reads_threads: bool
    picks_gpu_by_local_rank: int | None
    """The line that takes a GPU from a list with `local_rank()` or SLURM_LOCALID."""
    reads_slurm: int | None
    """The first line that names one of Slurm's rank variables."""
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
        line = getattr(error, "lineno", None) or 1
        finding = Finding(
            rule="no-python",
            file=file,
            line=line,
            message="this is not valid Python 3",
            evidence=str(getattr(error, "msg", error)) or "it is too deeply nested",
            fix=f"`python3 -m py_compile {file}` shows the error; Python 2 is not supported",
        )
        return Training(
            file=file,
            horovod=False,
            mirrored=False,
            multiworker=False,
            reads_threads=True,
            picks_gpu_by_local_rank=None,
            reads_slurm=None,
            needs=needs(()),
            findings=(finding,),
        )
    return _Reader(tree, text, file).read()


def _trains(module: str) -> bool:
    """Whether a module is a part of Horovod that training scripts import."""
    first, *rest = module.split(".")
    return first == "horovod" and rest[:1] not in ([starter] for starter in STARTERS)


class _Reader:
    """Reads one syntax tree, and knows the names under which the script imports Horovod."""

    def __init__(self, tree: ast.Module, text: str, file: str) -> None:
        self.nodes = list(ast.walk(tree))
        self.source, self.file = text.splitlines(), file
        self.aliases, self.imported = self._horovod()
        self.names = {node.attr for node in self.nodes if isinstance(node, ast.Attribute)}
        self.names |= {node.id for node in self.nodes if isinstance(node, ast.Name)}
        self.texts = {
            node.value for node in self.nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }

    def _horovod(self) -> tuple[set[str], int | None]:
        """The names under which Horovod is imported, and the line of the first import."""
        aliases: set[str] = set()
        lines = []
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if _trains(alias.name):
                        aliases.add(alias.asname or alias.name)
                        lines.append(node.lineno)
            elif isinstance(node, ast.ImportFrom) and _trains(node.module or ""):
                aliases |= {alias.asname or alias.name for alias in node.names}
                lines.append(node.lineno)
        return aliases, min(lines, default=None)

    def read(self) -> Training:
        """The training script: what it uses, and its faults."""
        multiworker = "MultiWorkerMirroredStrategy" in self.names
        slurm = [node.lineno for node in self.nodes if isinstance(node, ast.Constant) and node.value in SLURM_NUMBERS]
        pick = [
            node.lineno
            for node in self.nodes
            if isinstance(node, ast.Subscript)
            and not self._is_environ(node.value)
            and not isinstance(node.slice, ast.IfExp)  # the script first checks how many GPUs there are
            and any(
                (isinstance(part, ast.Attribute) and part.attr == "local_rank")
                or (isinstance(part, ast.Constant) and part.value == "SLURM_LOCALID")
                for part in ast.walk(node.slice)
            )
        ]
        return Training(
            file=self.file,
            horovod=self.imported is not None,
            mirrored="MirroredStrategy" in self.names and not multiworker,
            multiworker=multiworker,
            reads_threads=bool({"NUM_INTER_THREADS", "NUM_INTRA_THREADS"} & self.texts)
            or any("intra_op_parallelism_threads" in name for name in self.names | self._keywords()),
            picks_gpu_by_local_rank=min(pick, default=None),
            reads_slurm=min(slurm, default=None),
            needs=needs(self.nodes),
            findings=tuple(sorted(self._findings(), key=lambda finding: finding.line)),
        )

    def _keywords(self) -> set[str]:
        return {node.arg for node in self.nodes if isinstance(node, ast.keyword) and node.arg}

    @staticmethod
    def _is_environ(node: ast.expr) -> bool:
        return isinstance(node, ast.Attribute) and node.attr == "environ"

    def _finding(self, rule: str, line: int, message: str, fix: str) -> Finding:
        shown = self.source[line - 1].strip() if 0 < line <= len(self.source) else ""
        return Finding(rule=rule, file=self.file, line=line, message=message, evidence=shown, fix=fix)

    def _findings(self) -> Iterator[Finding]:
        if self.imported is not None:
            yield from self._of_horovod(self.imported)
        for fault in (*session_faults(self.nodes), *callback_faults(self.nodes), *input_faults(self.nodes)):
            yield self._finding(fault.rule, fault.line, fault.message, fault.fix)
        for node in self.nodes:
            if isinstance(node, ast.Compare):
                yield from self._compared(node)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("/tmp/"):
                yield self._finding(
                    "node-local-output",
                    node.lineno,
                    f"`{node.value}` is on the node and is lost after the job",
                    'write to a folder below `os.environ["PROVISION_OUTPUT"]`',
                )
        softmax = [
            node
            for node in self.nodes
            if isinstance(node, ast.keyword)
            and node.arg == "activation"
            and isinstance(node.value, ast.Constant)
            and node.value.value == "softmax"
        ]
        logits = [
            node
            for node in self.nodes
            if isinstance(node, ast.keyword)
            and node.arg == "from_logits"
            and isinstance(node.value, ast.Constant)
            and node.value.value is True
        ]
        if softmax and logits:
            yield self._finding(
                "softmax-twice",
                logits[0].value.lineno,
                "the model ends with softmax, and the loss applies softmax again",
                "remove `activation='softmax'` or `from_logits=True`",
            )

    def _of_horovod(self, line: int) -> Iterator[Finding]:
        calls = [node for node in self.nodes if isinstance(node, ast.Call)]
        called = {last(call) for call in calls}
        if "init" not in called:
            yield self._finding(
                "horovod-not-initialised", line, "Horovod is imported but never initialised", "call `hvd.init()` first"
            )
        if not called & set(WRAPPERS):
            yield self._finding(
                "not-distributed",
                line,
                "Horovod is imported, but no optimizer or tape is wrapped, so each rank trains alone",
                "`opt = hvd.DistributedOptimizer(opt)`, or `tape = hvd.DistributedGradientTape(tape)`",
            )
        if not called & set(BROADCASTS):
            yield self._finding(
                "no-broadcast",
                line,
                "the first weights are not broadcast, so the ranks start from different weights",
                "use `hvd.callbacks.BroadcastGlobalVariablesCallback(0)`, the hook of that name, or `broadcast_variables`",
            )
        if called & set(SAVERS) and "rank" not in called:
            saver = next(call for call in calls if last(call) in SAVERS)
            yield self._finding(
                "all-ranks-write",
                saver.lineno,
                "every rank writes the same files",
                "do this only `if hvd.rank() == 0:`",
            )
        functions = [call.func for call in calls]
        for node in self.nodes:
            if (
                isinstance(node, ast.Attribute)
                and node.attr in FUNCTIONS
                and isinstance(node.value, ast.Name)
                and node.value.id in self.aliases
                and node not in functions
            ):
                yield self._finding(
                    "never-called",
                    node.lineno,
                    f"`{node.value.id}.{node.attr}` is a function, not a number",
                    f"`{node.value.id}.{node.attr}()`",
                )
        for node in self.nodes:
            if isinstance(node, ast.Constant) and node.value in SLURM_NUMBERS:
                function = {"SLURM_PROCID": "rank", "SLURM_LOCALID": "local_rank", "SLURM_NTASKS": "size"}[
                    str(node.value)
                ]
                yield self._finding(
                    "slurm-number-in-horovod",
                    node.lineno,
                    f"`{node.value}` is right only if srun starts the ranks (with mpirun it is 0 for all of them)",
                    f"`hvd.{function}()`",
                )

    def _compared(self, node: ast.Compare) -> Iterator[Finding]:
        """Comparisons of a variable of the environment, which is text, with a number: they are never equal."""
        sides = [node.left, *node.comparators]
        texts = [side for side in sides if self._from_environ(side)]
        numbers = [
            side
            for side in sides
            if isinstance(side, ast.Constant) and isinstance(side.value, int) and not isinstance(side.value, bool)
        ]
        if texts and numbers:
            yield self._finding(
                "text-is-no-number",
                node.lineno,
                "a variable of the environment is text, which is never equal to a number",
                "`int(os.environ[…])`",
            )

    def _from_environ(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Subscript):
            return self._is_environ(node.value)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            return node.func.attr == "getenv" or (node.func.attr == "get" and self._is_environ(node.func.value))
        return False
