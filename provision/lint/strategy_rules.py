"""The rules for strategies of `tf.distribute` in a training script: where the model is made, and which servers it needs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from provision.lint.syntax import Fault, Script, dotted, given, last

STRATEGIES = ("MirroredStrategy", "MultiWorkerMirroredStrategy", "CentralStorageStrategy")
MODELS = ("Sequential", "Model", "clone_model", "model_from_json")
SERVERS = re.compile(r".*\b(train|distribute)\.(Server|replica_device_setter)|.*\bParameterServerStrategy(V1|V2)?")


def strategy_faults(script: Script) -> Iterator[Fault]:
    """Faults in the use of strategies."""
    for call in script.calls:
        if SERVERS.fullmatch(dotted(call.func)):
            yield Fault(
                rule="parameter-server",
                line=call.lineno,
                message="parameter servers send all weights over gRPC, which is slow on the networks of clusters",
                fix="Horovod, or `tf.distribute.MultiWorkerMirroredStrategy`",
            )
            break
    made = [call for call in script.calls if last(call) in STRATEGIES]
    if not made or any(module.startswith(".") for module in script.modules):
        return
    name = next(
        (value for value, values in script.assigned.items() if any(call in values for call in made)),
        None,
    )
    if name is None:
        return
    yield from _outside(script, name, made[0])
    yield from _batches(script, made[0])


def _scopes(script: Script) -> list[ast.With]:
    return [
        node
        for node in script.nodes
        if isinstance(node, ast.With) and any(last(item.context_expr) == "scope" for item in node.items)
    ]


def _outside(script: Script, name: str, made: ast.Call) -> Iterator[Fault]:
    """A model that is made outside the scope of the strategy, and trained with `fit`."""
    fits = [call for call in script.calls if isinstance(call.func, ast.Attribute) and call.func.attr == "fit"]
    # A strategy that is handed on, or used in another way than with `scope`, is used by code that is not understood.
    handed = [
        node
        for node in script.nodes
        if isinstance(node, ast.Name)
        and node.id == name
        and isinstance(node.ctx, ast.Load)
        and not isinstance(script.parents.get(id(node)), ast.Attribute)
    ]
    methods = {node.attr for node in script.nodes if isinstance(node, ast.Attribute) and dotted(node.value) == name}
    # With reshaping of the API in tests: `run`, `experimental_distribute_dataset` are loops of the user's own.
    if not fits or handed or methods & {"run", "experimental_run_v2", "experimental_distribute_dataset", "extended"}:
        return
    scopes = _scopes(script)
    within = (part for scope in scopes for part in ast.walk(scope) if isinstance(part, ast.Call))
    if any(_makes_model(script, part) for part in within):
        return  # another model, for a comparison or after a restart
    fitted = {dotted(call.func.value) for call in fits if isinstance(call.func, ast.Attribute)}
    for node in script.nodes:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call) or node.lineno < made.lineno:
            continue
        if dotted(node.targets[0]) not in fitted or not _makes_model(script, node.value):
            continue
        outer = list(script.around(node))
        if any(scope in outer for scope in scopes):
            continue
        # In a function that is called within the scope, or from elsewhere.
        if any(isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) for part in outer) and scopes:
            continue
        yield Fault(
            rule="outside-scope",
            line=node.lineno,
            message="this model is made outside the scope of the strategy, so it trains on one device only",
            fix=f"`with {name}.scope():` around the lines that make and compile the model",
        )
        return


def _makes_model(script: Script, call: ast.Call) -> bool:
    """Whether a call makes a Keras model, itself or in a function of the script."""
    if last(call) in MODELS:
        return True
    return any(
        any(isinstance(part, ast.Call) and last(part) in MODELS for part in ast.walk(function))
        and not any(
            isinstance(part, ast.With) and any(last(i.context_expr) == "scope" for i in part.items)
            for part in ast.walk(function)
        )
        for function in script.functions(last(call))
    )


def _batches(script: Script, made: ast.Call) -> Iterator[Fault]:
    """A batch of the whole strategy that has a fixed size: more GPUs then get less work each."""
    names = {node.attr for node in script.nodes if isinstance(node, ast.Attribute)}
    batches = [
        call for call in script.calls if last(call) == "batch" and isinstance(call.func, ast.Attribute) and call.args
    ]
    fits = [call for call in script.calls if isinstance(call.func, ast.Attribute) and call.func.attr == "fit"]
    # What is trained before the strategy is made is trained without it, and so are the data sets up to there.
    early = [call.lineno for call in fits if call.lineno < made.lineno]
    if early and not any(isinstance(outer, ast.FunctionDef) for outer in script.around(made)):
        fits = [call for call in fits if call.lineno > made.lineno]
        batches = [call for call in batches if call.lineno > max(early)]
    if not fits or "num_replicas_in_sync" in names:
        return
    fixed = [call for call in batches if isinstance(call.args[0], ast.Constant)]
    fixed += [call for call in fits if isinstance(given(call, "batch_size"), ast.Constant)]
    if fixed:
        yield Fault(
            rule="batch-of-all",
            line=fixed[0].lineno,
            message="the batch is divided among the GPUs, so with more GPUs each has less to do",
            fix="multiply the size by `strategy.num_replicas_in_sync`",
        )
    arrays = [call for call in fits if len(call.args) > 1 or given(call, "y") is not None]
    if arrays:
        yield Fault(
            rule="arrays-in-strategy",
            line=arrays[0].lineno,
            message="arrays are copied to all GPUs from one process; a `tf.data.Dataset` is divided and read ahead",
            fix="`tf.data.Dataset.from_tensor_slices((x, y)).shuffle(…).batch(…)`",
        )
