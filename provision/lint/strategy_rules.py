"""The rules for strategies of `tf.distribute` in a training script: where the model is made, and which servers it needs."""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

from provision.lint.rule import Found, advice, error
from provision.lint.syntax import FUNCTIONS, Script, dotted, given, last
from provision.lint.training_script import Training

STRATEGIES = ("MirroredStrategy", "MultiWorkerMirroredStrategy", "CentralStorageStrategy")
MODELS = ("Sequential", "Model", "clone_model", "model_from_json")
SERVERS = re.compile(r".*\b(train|distribute)\.(Server|replica_device_setter)|.*\bParameterServerStrategy(V1|V2)?")


@advice(
    "parameter-server",
    "parameter servers send all weights over gRPC, which is slow on the networks of clusters",
    "Horovod, or `tf.distribute.MultiWorkerMirroredStrategy`",
)
def parameter_server(program: Training) -> Found:
    """Parameter servers."""
    yield from [(call,) for call in program.script.calls if SERVERS.fullmatch(dotted(call.func))][:1]


class Strategy(NamedTuple):
    """The strategy of a script: the call that makes it, and its name."""

    made: ast.Call
    name: str


def _strategy(script: Script) -> Strategy | None:
    """The strategy that a script of one file makes and gives a name."""
    made = script.calls_of(*STRATEGIES)
    names = (name for name, values in script.assigned.items() if any(call in values for call in made))
    name = None if any(module.startswith(".") for module in script.modules) else next(names, None)
    return Strategy(made[0], name) if name is not None else None


def _is_scope(node: ast.AST) -> bool:
    return isinstance(node, ast.With) and any(last(item.context_expr) == "scope" for item in node.items)


@error(
    "outside-scope",
    "this model is made outside the scope of the strategy, so it trains on one device only",
    "`with {0}.scope():` around the lines that make and compile the model",
)
def outside_scope(program: Training) -> Found:
    """A model that is made outside the scope of its strategy."""
    script, strategy = program.script, _strategy(program.script)
    fits = script.methods("fit")
    if strategy is None or not fits:
        return
    # A strategy that is handed on, or used in another way than with `scope`, is used by code that is not understood:
    # `run` and `experimental_distribute_dataset` are loops of the user's own.
    uses = [node for node in script.of(ast.Name) if node.id == strategy.name and isinstance(node.ctx, ast.Load)]
    handed = any(not isinstance(script.parents.get(id(node)), ast.Attribute) for node in uses)
    methods = {node.attr for node in script.of(ast.Attribute) if dotted(node.value) == strategy.name}
    if handed or methods & {"run", "experimental_run_v2", "experimental_distribute_dataset", "extended"}:
        return
    scopes = [node for node in script.of(ast.With) if _is_scope(node)]
    if any(isinstance(part, ast.Call) and _makes_model(script, part) for scope in scopes for part in ast.walk(scope)):
        return  # another model, for a comparison or after a restart
    fitted = {dotted(call.func.value) for call in fits if isinstance(call.func, ast.Attribute)}
    for node in script.of(ast.Assign):
        late = node.lineno >= strategy.made.lineno and dotted(node.targets[0]) in fitted
        if not late or not isinstance(node.value, ast.Call) or not _makes_model(script, node.value):
            continue
        outer = list(script.around(node))
        # A function may be called within the scope, or from elsewhere.
        in_function = any(isinstance(part, (*FUNCTIONS, ast.ClassDef)) for part in outer)
        if not any(scope in outer for scope in scopes) and not (in_function and scopes):
            yield node, strategy.name
            return


def _makes_model(script: Script, call: ast.Call) -> bool:
    """Whether a call makes a Keras model, itself or in a function of the script."""
    return last(call) in MODELS or any(
        any(isinstance(part, ast.Call) and last(part) in MODELS for part in ast.walk(function))
        and not any(_is_scope(part) for part in ast.walk(function))
        for function in script.functions(last(call))
    )


def _fits(script: Script) -> tuple[list[ast.Call], int]:
    """The trainings under a strategy, and the last line of those before it: they have none, nor do the data sets up to there."""
    strategy, fits = _strategy(script), script.methods("fit")
    if strategy is None or "num_replicas_in_sync" in script.names:
        return [], 0
    early = [call.lineno for call in fits if call.lineno < strategy.made.lineno]
    if not early or any(isinstance(outer, ast.FunctionDef) for outer in script.around(strategy.made)):
        return fits, 0
    return [call for call in fits if call.lineno > strategy.made.lineno], max(early)


@advice(
    "batch-of-all",
    "the batch is divided among the GPUs, so with more GPUs each has less to do",
    "multiply the size by `strategy.num_replicas_in_sync`",
)
def batch_of_all(program: Training) -> Found:
    """A batch of fixed size that a strategy divides among GPUs."""
    fits, early = _fits(program.script)
    batches = [call for call in program.script.methods("batch") if call.args and call.lineno > early]
    fixed = [call for call in batches if isinstance(call.args[0], ast.Constant)]
    fixed += [call for call in fits if isinstance(given(call, "batch_size"), ast.Constant)]
    if fits and fixed:
        yield (fixed[0],)


@advice(
    "arrays-in-strategy",
    "arrays are copied to all GPUs from one process; a `tf.data.Dataset` is divided and read ahead",
    "`tf.data.Dataset.from_tensor_slices((x, y)).shuffle(…).batch(…)`",
)
def arrays_in_strategy(program: Training) -> Found:
    """Arrays instead of a data set under a strategy."""
    arrays = [call for call in _fits(program.script)[0] if len(call.args) > 1 or given(call, "y") is not None]
    yield from [(call,) for call in arrays[:1]]
