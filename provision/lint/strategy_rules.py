"""The rules for strategies of `tf.distribute` in a training script: where the model is made, and which servers it needs."""

from __future__ import annotations

import ast
import re

from provision.lint.rule import Found, advice, error
from provision.lint.syntax import DEFINITIONS, ShellScript, arguments, dotted, given, last, value_of
from provision.lint.training_script import TrainingProgram

STRATEGIES = ("MirroredStrategy", "MultiWorkerMirroredStrategy", "CentralStorageStrategy")
MODELS = ("Sequential", "Model", "clone_model", "model_from_json")
SERVERS = re.compile(r".*\b(train|distribute)\.(Server|replica_device_setter)|.*\bParameterServerStrategy(V1|V2)?")


@advice(
    "parameter servers send all weights over gRPC, which is slow on the networks of clusters",
    "Horovod, or `tf.distribute.MultiWorkerMirroredStrategy`",
)
def parameter_server(program: TrainingProgram) -> Found:
    """Parameter servers."""
    yield from [(call,) for call in program.script.calls if SERVERS.fullmatch(dotted(call.func))][:1]


# Methods by which a program trains without `fit`, or hands the strategy to code that is not understood.
OTHER_USES = {
    *("run", "experimental_run_v2", "experimental_distribute_dataset", "distribute_datasets_from_function", "extended"),
    *("experimental_set_strategy", "RunConfig", "Estimator", "train_distribute", "distribute_strategy"),
}


def _in_scope(script: ShellScript, node: ast.AST, depth: int = 4) -> bool:
    """Whether a node is run within the scope of a strategy, as far as it can be seen; True if it cannot."""
    for outer in script.around(node):
        if isinstance(outer, ast.With) and any(last(item.context_expr) == "scope" for item in outer.items):
            return True
        if isinstance(outer, DEFINITIONS):
            calls = None if isinstance(outer, ast.ClassDef) else script.callers(outer)
            return calls is None or not depth or any(_in_scope(script, call, depth - 1) for call in calls)
    return False


@error(
    "this model is made outside the scope of the strategy, so it trains on one device only",
    "`with {0}.scope():` around the lines that make and compile the model",
)
def outside_scope(program: TrainingProgram) -> Found:
    """A model that is made outside the scope of its strategy."""
    script, made = program.script, program.script.calls_of(*STRATEGIES)
    whole = program.is_whole and script.runs and len(program.scripts) == 1
    if not made or not script.methods("fit") or OTHER_USES & (script.names | script.keywords) or not whole:
        return
    names = {name for name, values in script.assigned.items() if any(call in values for call in made)}
    defined = {node.name for node in script.nodes if isinstance(node, DEFINITIONS)}
    # Another function, such as one of a library, may enter the scope of a strategy that it is given.
    handed = {last(call) for call in script.calls if any(last(one) in names for one in arguments(call))}
    classes = [node.name for node in script.of(ast.ClassDef) if any(last(base) in MODELS for base in node.bases)]
    models = script.calls_of(*MODELS, *classes)
    models += [call for call in script.calls if ".applications." in dotted(call.func)]
    if handed - defined - {"print"} or any(_in_scope(script, one) for one in models):
        return  # a model in the scope is trained, and another one is compared with it, or a part of it
    for one in models:
        if one.lineno > made[0].lineno or script.is_inside(one, *DEFINITIONS):
            yield one, min(names, default="strategy")
            return


def _fits(script: ShellScript) -> tuple[list[ast.Call], int]:
    """The trainings under a strategy, and the last line of those before it: they have none, nor do the data sets up to there."""
    made, fits = script.calls_of(*STRATEGIES), script.methods("fit")
    if not made or "num_replicas_in_sync" in script.names:
        return [], 0
    early = [call.lineno for call in fits if call.lineno < made[0].lineno]
    if not early or any(script.is_inside(call, *DEFINITIONS) for call in (made[0], *fits)):
        return fits, 0
    return [call for call in fits if call.lineno > made[0].lineno], max(early)


@advice(
    "the batch is divided among the GPUs, so with more GPUs each has less to do",
    "multiply the size by `strategy.num_replicas_in_sync`",
)
def batch_of_all(program: TrainingProgram) -> Found:
    """A batch of fixed size that a strategy divides among GPUs."""
    script = program.script
    fits, early = _fits(script)
    sizes = [(call, call.args[0]) for call in script.methods("batch") if call.args and call.lineno > early]
    sizes += [(call, size) for call in fits if (size := given(call, "batch_size")) is not None]
    fixed = [call for call, size in sizes if all(isinstance(value_of(value), int) for value in script.sources(size))]
    if fits and fixed:
        yield (fixed[0],)


@advice(
    "arrays are copied to all GPUs from one process; a `tf.data.Dataset` is divided and read ahead",
    "`tf.data.Dataset.from_tensor_slices((x, y)).shuffle(…).batch(…)`",
)
def arrays_in_strategy(program: TrainingProgram) -> Found:
    """Arrays instead of a data set under a strategy."""
    arrays = [call for call in _fits(program.script)[0] if len(call.args) > 1 or given(call, "y") is not None]
    yield from [(call,) for call in arrays[:1]]
