"""The rules for Horovod in a training script: faults that make each rank train alone, or believe that it is another rank."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from provision.lint.syntax import TRAINS, Fault, Script, dotted, last
from provision.lint.together import uses_horovod

WRAPPERS = (
    *("DistributedOptimizer", "DistributedGradientTape", "DistributedAdasumOptimizer", "PartialDistributedOptimizer"),
    *("PartialDistributedGradientTape", "DistributedTrainer"),
    *("allreduce", "allreduce_", "allreduce_async", "allreduce_async_", "grouped_allreduce", "grouped_allreduce_"),
)
BROADCASTS = (
    *("BroadcastGlobalVariablesHook", "BroadcastGlobalVariablesCallback", "broadcast_variables"),
    *("broadcast_global_variables", "BroadcastGlobalVariables", "broadcast", "broadcast_", "broadcast_object"),
    *("broadcast_parameters", "broadcast_optimizer_state"),
    # States of elastic Horovod broadcast by themselves.
    *("KerasState", "TensorFlowState", "TensorFlowKerasState", "TorchState"),
)
FUNCTIONS = ("rank", "size", "local_rank", "local_size", "cross_rank", "cross_size", "init")
SLURM_NUMBERS = {"SLURM_PROCID": "rank", "SLURM_LOCALID": "local_rank", "SLURM_NTASKS": "size"}


def read_imports(script: Script) -> tuple[set[str], int | None]:
    """The names under which Horovod is imported, and the line of the first import."""
    aliases: set[str] = set()
    lines: list[int] = []
    if any(name.startswith(("horovod.spark", "horovod.ray", "pyspark")) for name in script.modules):
        return aliases, None  # an estimator of Horovod trains, and does by itself what the rules ask for
    for node in script.nodes:
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        of = f"{node.module}." if isinstance(node, ast.ImportFrom) and not node.level else ""
        for alias in node.names:
            if uses_horovod(f"{of}{alias.name}"):
                aliases.add(alias.asname or alias.name)
                lines.append(node.lineno)
    return aliases, min(lines, default=None)


def whole_faults(scripts: Sequence[Script], aliases: set[str], line: int) -> Iterator[Fault]:
    """The faults of a program with Horovod of which every part was read: the training script, then the modules beside it."""
    called: set[str] = set().union(*(script.called for script in scripts))
    if not called & set(TRAINS):
        return
    if "init" not in called and not _only_names(scripts[0], aliases):
        yield Fault(
            rule="horovod-not-initialised",
            line=line,
            message="Horovod is imported but never initialised",
            fix="call `hvd.init()` first",
        )
    if not called & set(WRAPPERS):
        yield Fault(
            rule="not-distributed",
            line=line,
            message="Horovod is imported, but no optimizer or tape is wrapped, so each rank trains alone",
            fix="`opt = hvd.DistributedOptimizer(opt)`, or `tape = hvd.DistributedGradientTape(tape)`",
        )
    if not called & set(BROADCASTS):
        yield Fault(
            rule="no-broadcast",
            line=line,
            message="the first weights are not broadcast, so the ranks start from different weights",
            fix="use `hvd.callbacks.BroadcastGlobalVariablesCallback(0)`, the hook of that name, or `broadcast_variables`",
        )


def horovod_faults(script: Script, aliases: set[str]) -> Iterator[Fault]:
    """The faults in how a script uses the functions of Horovod."""
    functions = {id(call.func) for call in script.calls}
    passed = {
        id(argument) for call in script.calls for argument in (*call.args, *(word.value for word in call.keywords))
    }
    for node in script.nodes:
        if (
            isinstance(node, ast.Attribute)
            and node.attr in FUNCTIONS
            and isinstance(node.value, ast.Name)
            and node.value.id in aliases
            and id(node) not in functions
            and id(node) not in passed
            and isinstance(node.ctx, ast.Load)
            and isinstance(
                script.parents.get(id(node)),
                ast.Compare
                | ast.BinOp
                | ast.If
                | ast.IfExp
                | ast.BoolOp
                | ast.UnaryOp
                | ast.Subscript
                | ast.FormattedValue,
            )
        ):
            yield Fault(
                "never-called",
                node.lineno,
                f"`{node.value.id}.{node.attr}` is a function, not a number",
                f"`{node.value.id}.{node.attr}()`",
            )
    for node in script.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in SLURM_NUMBERS:
            yield Fault(
                "slurm-number-in-horovod",
                node.lineno,
                "`SLURM_NTASKS` is what the job requests, which may differ from the number of ranks that Horovod has"
                if node.value == "SLURM_NTASKS"
                else f"`{node.value}` is right only if srun starts the ranks (with mpirun it is 0 for all of them)",
                f"`hvd.{SLURM_NUMBERS[node.value]}()`",
            )


def _only_names(script: Script, aliases: set[str]) -> bool:
    """Whether the script imports Horovod for others and uses nothing of it that needs `init`."""
    used = {
        node.attr
        for node in script.nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in aliases
    }
    return not used & {*FUNCTIONS, *WRAPPERS, *BROADCASTS}


def unimported_fault(script: Script) -> Iterator[Fault]:
    """Horovod's usual name without the import: the example of a page multiplies by `hvd.size()` before it has Horovod."""
    if "hvd" in script.bound or any(isinstance(node, ast.alias) and node.name == "*" for node in script.nodes):
        return
    for node in script.nodes:
        if isinstance(node, ast.Attribute) and dotted(node) in ("hvd.size", "hvd.rank", "hvd.init", "hvd.local_rank"):
            yield Fault(
                "horovod-not-imported",
                node.lineno,
                "`hvd` is used but never imported: `NameError`",
                "`import horovod.tensorflow.keras as hvd`, or `horovod.tensorflow` without Keras, then `hvd.init()`",
            )
            return


# Who writes

WRITE_FILES = ("ModelCheckpoint", "BackupAndRestore", "TensorBoard", "CSVLogger")
SUMMARIES = ("FileWriter", "create_file_writer", "SummaryWriter")
OF_MODEL = ("model", "saver", "checkpoint", "ckpt", "net")
MONITORED = "MonitoredTrainingSession"


def writer_faults(script: Script) -> Iterator[Fault]:
    """Files that every rank of a script with Horovod writes, as far as it can be seen."""
    if any(module.partition(".")[0] in ("torch", "pytorch_lightning", "mxnet") for module in script.modules):
        return  # Lightning's `ModelCheckpoint` writes on rank 0 only
    for call in script.calls:
        name = last(call)
        if name == MONITORED:
            yield from _of_session(script, call)
        elif _writes(call, name) and not script.on_some_ranks(call) and not _for_some_ranks(script, call):
            if any(script.by_rank(argument) for argument in (*call.args, *(word.value for word in call.keywords))):
                continue  # each rank has its own file
            checkpoint = name not in (*SUMMARIES, "TensorBoard", "CSVLogger")
            yield Fault(
                rule="all-ranks-write" if not checkpoint else "all-ranks-save",
                line=call.lineno,
                message=f"every rank runs this `{name}`, so all ranks write the same files"
                + (" and damage them" if checkpoint else ""),
                fix="do this only `if hvd.rank() == 0:`"
                if name not in WRITE_FILES
                else "append it to the callbacks only `if hvd.rank() == 0:`",
            )


def _writes(call: ast.Call, name: str) -> bool:
    """Whether a call writes files of a training: checkpoints, weights, summaries."""
    if name in (*WRITE_FILES, *SUMMARIES):
        return bool(call.args or call.keywords)
    if name in ("save_weights", "save_model"):
        return isinstance(call.func, ast.Attribute)
    if name == "save" and isinstance(call.func, ast.Attribute):
        receiver = last(call.func.value).lower()
        return any(word in receiver for word in OF_MODEL)
    return False


def _of_session(script: Script, call: ast.Call) -> Iterator[Fault]:
    """A monitored session with a folder for checkpoints that does not depend on the rank."""
    folder = next((word.value for word in call.keywords if word.arg == "checkpoint_dir"), None)
    chief = next((word.value for word in call.keywords if word.arg == "is_chief"), None)
    if folder is None or (isinstance(folder, ast.Constant) and folder.value is None) or chief is not None:
        return
    if isinstance(folder, ast.Name) and folder.id not in script.assigned:
        return  # an argument of a function, or imported
    if script.by_rank(folder) or script.on_some_ranks(call):
        return
    if isinstance(folder, ast.Name) and any(
        script.on_some_ranks(value) for value in script.assigned.get(folder.id, ())
    ):
        return
    yield Fault(
        rule="all-ranks-save",
        line=call.lineno,
        message="every rank has this `checkpoint_dir`, so all ranks write the same files and damage them",
        fix='`checkpoint_dir="…" if hvd.rank() == 0 else None`',
    )


def _for_some_ranks(script: Script, call: ast.Call) -> bool:
    """Whether a value is given to a name that is read on some ranks only: `saver = …`, then `if hvd.rank() == 0: use(saver)`."""
    parent = script.parents.get(id(call))
    if isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Attribute):
        return True  # an attribute may be read anywhere
    if isinstance(parent, ast.Return):
        return True
    if not isinstance(parent, ast.Assign) or not isinstance(parent.targets[0], ast.Name):
        return False
    name = parent.targets[0].id
    read = [
        node
        for node in script.nodes
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
    ]
    if not read:
        return last(call) != "FileWriter"  # which makes its file at once
    return all(script.on_some_ranks(node) for node in read)
