"""The rules for Horovod in a training script: faults that make each rank train alone, or believe that it is another rank."""

from __future__ import annotations

import ast

from provision.lint.rule import Found, error, warning
from provision.lint.syntax import TRAINS, Syntax, arguments, dotted, given, last
from provision.lint.training_script import OVER_TORCH, TrainingProgram

WRAPPERS = {
    *("DistributedOptimizer", "DistributedGradientTape", "DistributedAdasumOptimizer", "PartialDistributedOptimizer"),
    *("PartialDistributedGradientTape", "DistributedTrainer"),
    *("allreduce", "allreduce_", "allreduce_async", "allreduce_async_", "grouped_allreduce", "grouped_allreduce_"),
}
BROADCASTS = {
    *("BroadcastGlobalVariablesHook", "BroadcastGlobalVariablesCallback", "broadcast_variables"),
    *("broadcast_global_variables", "BroadcastGlobalVariables", "broadcast", "broadcast_", "broadcast_object"),
    *("broadcast_parameters", "broadcast_optimizer_state"),
    # States of elastic Horovod broadcast by themselves.
    *("KerasState", "TensorFlowState", "TensorFlowKerasState", "TorchState"),
}
FUNCTIONS = {"rank", "size", "local_rank", "local_size", "cross_rank", "cross_size", "init"}
SLURM_NUMBERS = {"SLURM_PROCID": "rank", "SLURM_LOCALID": "local_rank", "SLURM_NTASKS": "size"}
USED_AS_NUMBER = (ast.Compare, ast.BinOp, ast.If, ast.IfExp, ast.BoolOp, ast.UnaryOp, ast.Subscript, ast.FormattedValue)
WRITE_FILES = ("ModelCheckpoint", "BackupAndRestore", "TensorBoard", "CSVLogger")
SUMMARIES = ("FileWriter", "create_file_writer", "SummaryWriter", "SummarySaverHook")
MAKE_FILES = ("FileWriter", "SummaryWriter")
"""These make their file at once, though nothing uses them."""
LOGS = (*SUMMARIES, "TensorBoard", "CSVLogger")
OF_MODEL = ("model", "saver", "checkpoint", "ckpt", "net")


def _import_of_whole(program: TrainingProgram) -> int | None:
    """The line that imports Horovod for TensorFlow, if every part of a program that trains was read."""
    trains = program.horovod and program.called & set(TRAINS)
    if not trains or not program.script.runs or not program.is_whole:
        return None
    modules = {name for script in program.scripts.values() for one in script.imports for name in one.modules}
    of_tensorflow = any(name.startswith(("horovod.tensorflow", "horovod.keras")) for name in modules)
    return min(program.aliases.values(), default=1) if of_tensorflow else None


def _of_horovod(program: TrainingProgram) -> list[ast.Attribute]:
    """What the script uses of Horovod."""
    return [node for node in program.script.of(ast.Attribute) if getattr(node.value, "id", "") in program.aliases]


@error("Horovod is imported but never initialised", "call `hvd.init()` first")
def horovod_not_initialised(program: TrainingProgram) -> Found:
    """Horovod without `hvd.init()`."""
    line = _import_of_whole(program)
    used = {node.attr for node in _of_horovod(program)} & (FUNCTIONS | WRAPPERS | BROADCASTS)
    if line and used and "init" not in program.called:  # without a use, the script imports it for others
        yield (line,)


@error(
    "Horovod is imported, but no optimizer or tape is wrapped, so each rank trains alone",
    "`opt = hvd.DistributedOptimizer(opt)`, or `tape = hvd.DistributedGradientTape(tape)`",
)
def not_distributed(program: TrainingProgram) -> Found:
    """Horovod without a wrapped optimizer or tape."""
    line = _import_of_whole(program)
    if line and not program.called & WRAPPERS:
        yield (line,)


@error(
    "the first weights are not broadcast, so the ranks start from different weights",
    "use `hvd.callbacks.BroadcastGlobalVariablesCallback(0)`, the hook of that name, or `broadcast_variables`",
)
def no_broadcast(program: TrainingProgram) -> Found:
    """Horovod without a broadcast of the first weights."""
    line = _import_of_whole(program)
    if line and not program.called & BROADCASTS:
        yield (line,)


@error("`{0}` is a function, not a number", "`{0}()`")
def never_called(program: TrainingProgram, script: Syntax) -> Found:
    """`hvd.rank` instead of `hvd.rank()`."""
    passed = {id(node) for call in script.calls for node in (call.func, *arguments(call))}
    for node in _of_horovod(program):
        parent = script.parents.get(id(node))
        if node.attr in FUNCTIONS and id(node) not in passed and isinstance(parent, USED_AS_NUMBER):
            yield node, dotted(node)


@warning("`{0}` is {1}", "`hvd.{2}()`")
def slurm_number_in_horovod(program: TrainingProgram, script: Syntax) -> Found:
    """A rank of Slurm in a script with Horovod."""
    for node in script.of(ast.Constant) if program.aliases else ():
        if isinstance(node.value, str) and node.value in SLURM_NUMBERS:
            requested = "what the job requests, which may differ from the number of ranks that Horovod has"
            by_srun = "right only if srun starts the ranks (with mpirun it is 0 for all of them)"
            yield node, node.value, requested if node.value == "SLURM_NTASKS" else by_srun, SLURM_NUMBERS[node.value]


@error(
    "`hvd` is used but never imported: `NameError`",
    "`import horovod.tensorflow.keras as hvd`, or `horovod.tensorflow` without Keras, then `hvd.init()`",
)
def horovod_not_imported(script: Syntax) -> Found:
    """`hvd` that is never imported."""
    imported = {alias.asname or alias.name for alias in script.of(ast.alias)}
    if not {"hvd", "*"} & (imported | script.assigned.keys() | script.arguments):
        names = ("hvd.size", "hvd.rank", "hvd.init", "hvd.local_rank")
        yield from [(node,) for node in script.of(ast.Attribute) if dotted(node) in names][:1]


@error(
    "`local_rank()` counts the ranks of one node, but `size()` those of all nodes: on more nodes, some data are read by nobody",
    "`shard(hvd.size(), hvd.rank())`",
)
def shard_by_local_rank(script: Syntax) -> Found:
    """Data that are split by the local rank into as many parts as there are ranks on all nodes."""
    for call in script.methods("shard"):
        parts = [given(call, "num_shards", 0), given(call, "index", 1)]
        names = [{last(part) for value in script.sources(one) for part in ast.walk(value)} for one in parts if one]
        if len(names) > 1 and "local_rank" in names[1] and "local_size" not in names[0]:
            yield (call,)


# Who writes


def _written_by_all(program: TrainingProgram) -> list[ast.Call]:
    """The calls by which every rank writes a file of training, as far as it can be seen."""
    script = program.script
    ranks = program.aliases or (program.uses_torch and "ddp" in program.uses)
    if not ranks or program.modules & {*OVER_TORCH, "mxnet"}:
        return []  # Lightning's `ModelCheckpoint` writes on rank 0 only
    return [
        call
        for call in script.calls
        if (_writes(call) if program.aliases else dotted(call.func) == "torch.save" or last(call) == "SummaryWriter")
        and not script.on_some_ranks(call)
        and not _for_some_ranks(script, call)
        and not any(script.by_rank(argument) for argument in _names_file(call))  # each rank has its own file
    ]


@warning("every rank runs this `{0}`, so all ranks write the same files", "{1} only `if {2} == 0:`")
def all_ranks_write(program: TrainingProgram) -> Found:
    """Summaries and logs that every rank writes."""
    for call in _written_by_all(program):
        if last(call) in LOGS:
            yield call, last(call), *_only(program, call)


@error("every rank runs this `{0}`, so all ranks write the same files and damage them", "{1} only `if {2} == 0:`")
def all_ranks_save(program: TrainingProgram) -> Found:
    """Checkpoints or models that every rank writes."""
    for call in _written_by_all(program):
        if last(call) not in LOGS:
            yield call, last(call), *_only(program, call)


@error(
    "every rank has this `checkpoint_dir`, so all ranks write the same files and damage them",
    '`checkpoint_dir="…" if hvd.rank() == 0 else None`',
    name="all-ranks-save",
)
def all_ranks_save_in_session(program: TrainingProgram, script: Syntax) -> Found:
    """A monitored session with a folder for checkpoints that does not depend on the rank."""
    for call in script.calls_of("MonitoredTrainingSession") if program.aliases else ():
        folder = given(call, "checkpoint_dir")
        # A name without a value is an argument of a function, or imported.
        values = script.assigned.get(folder.id) if isinstance(folder, ast.Name) else []
        is_none = isinstance(folder, ast.Constant) and folder.value is None
        if folder is None or is_none or values is None or given(call, "is_chief") is not None or script.by_rank(folder):
            continue
        if not any(script.on_some_ranks(place) for place in (call, *values)):
            yield (call,)


def _names_file(call: ast.Call) -> list[ast.expr]:
    """The arguments of a call that may name its file. The model of PyTorch is not one, though it knows its GPU."""
    return arguments(call)[1:] if dotted(call.func) == "torch.save" else arguments(call)


def _only(program: TrainingProgram, call: ast.Call) -> tuple[str, str]:
    """What to do on rank 0 only, and the expression for the rank."""
    what = "append it to the callbacks" if last(call) in WRITE_FILES else "do this"
    return what, "hvd.rank()" if program.aliases else "dist.get_rank()"


def _writes(call: ast.Call) -> bool:
    """Whether a call writes files of a training: checkpoints, weights, summaries."""
    name = last(call)
    if name in (*WRITE_FILES, *SUMMARIES, "CheckpointSaverHook"):
        return bool(arguments(call))
    if not isinstance(call.func, ast.Attribute):
        return False
    saves = name == "save" and any(word in last(call.func.value).lower() for word in OF_MODEL)
    return saves or name in ("save_weights", "save_model")


def _for_some_ranks(script: Syntax, call: ast.Call) -> bool:
    """Whether a value is given to a name that is read on some ranks only: `saver = …`, then `if hvd.rank() == 0: use(saver)`."""
    match script.parents.get(id(call)):
        case ast.Return() | ast.Assign(targets=[ast.Attribute(), *_]):
            return True  # it may be read anywhere
        case ast.Assign(targets=[ast.Name(id=name), *_]):
            read = script.reads(name)
            return all(script.on_some_ranks(node) for node in read) if read else last(call) not in MAKE_FILES
        case _:
            return False
