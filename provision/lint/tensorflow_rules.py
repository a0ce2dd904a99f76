"""The rules about TensorFlow and Keras in a training script: names of version 1, sessions, and the order of callbacks.

They use the syntax tree only. A rule reports nothing if it would have to guess: a script that reads `tf.__version__` already
distinguishes versions, and a callback that the user wrote may be anywhere in the list.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from provision.lint.syntax import Fault, Script, dotted, given, last, number_of

# Names that TensorFlow 1.15 has but 2.2, 2.15 and 2.21 do not have. Each was looked up in all four.
TF1_NAMES = re.compile(
    r"(Interactive)?Session|ConfigProto|GPUOptions|placeholder|get_variable|variable_scope|(global|trainable)_variables"
    r"|(global|local)_variables_initializer|(get|reset)_default_graph|set_random_seed|random_normal|truncated_normal"
    r"|to_float|log|assign|enable_eager_execution|parse_single_example|app\.(run|flags)|flags\.FLAGS|gfile\.GFile"
    r"|logging\.set_verbosity|python_io\.TFRecordWriter|contrib\.layers|layers\.(dense|conv2d)|summary\.(FileWriter|merge_all)"
    r"|losses\.sparse_softmax_cross_entropy|nn\.softmax_cross_entropy_with_logits_v2|data\.make_one_shot_iterator"
    r"|train\.((Adam|Adagrad|GradientDescent|Momentum|RMSProp)Optimizer|Saver|Scaffold|MonitoredTrainingSession"
    r"|(StopAtStep|CheckpointSaver|LoggingTensor|SessionRun|SummarySaver|NanTensor)Hook|(get_or_create_|get_)?global_step"
    r"|(polynomial|exponential)_decay|write_graph|batch)"
)
MONITORED = ("MonitoredTrainingSession", "MonitoredSession", "SingularMonitoredSession")
RUN_HOOKS = (*MONITORED, "Estimator", "EstimatorSpec", "train_and_evaluate", "model_to_estimator")
# Calls of TensorFlow that add something to the graph.
ADDS_TO_GRAPH = re.compile(
    r"(v1\.)?(constant|placeholder|Variable|get_variable|matmul|cast|argmax|equal|add|subtract|multiply|square|gradients"
    r"|reduce_\w+|global_variables_initializer|assign|math\.\w+|nn\.\w+|layers\.\w+|losses\.\w+|train\.\w+Optimizer"
    r"|train\.Saver|train\.get_or_create_global_step|summary\.(scalar|histogram|image|text|audio|merge|merge_all))"
)
BROADCAST, AVERAGE = "BroadcastGlobalVariablesCallback", "MetricAverageCallback"
# Callbacks that read the metrics, or change what the first batch is trained with.
READ_METRICS = ("ReduceLROnPlateau", "EarlyStopping", "TensorBoard", "ModelCheckpoint", "CSVLogger")
KNOWN_CALLBACKS = (
    *READ_METRICS,
    AVERAGE,
    "LearningRateWarmupCallback",
    "LearningRateScheduleCallback",
    "LearningRateScheduler",
)


class Needs(NamedTuple):
    """The uses that decide which TensorFlow a script works with: each is None, or the line of the use."""

    old_name: tuple[int, str] | None
    """A name of TensorFlow 1 that does not come from `tf.compat.v1`."""
    eager_placeholder: int | None
    """A placeholder of `tf.compat.v1` in a script that never disables eager execution."""
    run_function: int | None
    """`experimental_run_tf_function` passed to `compile` in a script that does not select Keras 2 itself."""
    compiles: int | None
    """A `compile` without `experimental_run_tf_function`."""
    reads: tuple[int, int] | None
    """The line and number of `num_parallel_reads`."""
    names: tuple[tuple[int, str, str], ...]
    """Names of files that Keras 3 refuses: the line, the name, and the ending that it wants."""
    multiworker: int | None
    """The line that makes a `tf.distribute.MultiWorkerMirroredStrategy`."""
    multiworker_fit: int | None
    """The line of a `fit` in a script with that strategy, if it does not select Keras 2 itself."""


def _imports(nodes: Sequence[ast.AST]) -> tuple[set[str], set[str]]:
    """The names under which TensorFlow is imported, and those of its `compat.v1`."""
    plain, old = set(), set()
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "tensorflow":
                    plain.add(alias.asname or alias.name)
                elif alias.name == "tensorflow.compat.v1" and alias.asname:
                    old.add(alias.asname)
        elif isinstance(node, ast.ImportFrom) and node.module == "tensorflow.compat":
            old |= {alias.asname or alias.name for alias in node.names if alias.name == "v1"}
        elif isinstance(node, ast.Assign) and dotted(node.value).endswith(".compat.v1"):
            old |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return plain - old, old


def needs(script: Script) -> Needs:
    """The version of TensorFlow that a script needs, as the uses that decide it."""
    nodes, calls = script.nodes, script.calls
    plain, old = _imports(nodes)
    # A script that reads the version, or tests for single names, handles several versions itself.
    decides = any(isinstance(node, ast.Attribute) and node.attr in ("__version__", "VERSION") for node in nodes) or any(
        last(call) in ("hasattr", "getattr") and call.args and dotted(call.args[0]).partition(".")[0] in plain
        for call in calls
    )
    names = [
        (node.lineno, dotted(node))
        for node in nodes
        if isinstance(node, ast.Attribute) and dotted(node).partition(".")[0] in plain
    ]
    olds = [(line, name) for line, name in names if TF1_NAMES.fullmatch(name.partition(".")[2])]
    lazy = {last(call) for call in calls} & {"disable_v2_behavior", "disable_eager_execution", "as_default"}
    holders = [
        call.lineno
        for call in calls
        if last(call) == "placeholder"
        and (dotted(call.func).partition(".")[0] in old or ".compat.v1." in dotted(call.func))
    ]
    compiled = [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "compile"]
    compiled = [call for call in compiled if given(call, "optimizer") is not None or given(call, "loss") is not None]
    flagged = [call.lineno for call in compiled if given(call, "experimental_run_tf_function") is not None]
    plainly = [call.lineno for call in compiled if not any(keyword.arg is None for keyword in call.keywords)]
    legacy = any(isinstance(node, ast.Constant) and node.value == "TF_USE_LEGACY_KERAS" for node in nodes)
    reads = [
        (call.lineno, value.value)
        for call in calls
        if last(call) == "TFRecordDataset"
        and isinstance(value := given(call, "num_parallel_reads"), ast.Constant)
        and isinstance(value.value, int)
    ]
    workers = [call for call in calls if last(call) == "MultiWorkerMirroredStrategy"]
    fits = [call.lineno for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "fit"]
    stable = [call.lineno for call in workers if "experimental" not in dotted(call.func)]
    return Needs(
        old_name=None if decides else min(olds, default=None),
        eager_placeholder=None if decides or lazy else min(holders, default=None),
        run_function=None if decides or legacy else min(flagged, default=None),
        compiles=None if decides or flagged else min(plainly, default=None),
        reads=max(reads, key=lambda read: read[1], default=None),
        names=() if decides or legacy else tuple(_file_names(script)),
        multiworker=None if decides else min(stable, default=None),
        multiworker_fit=None if decides or legacy or not workers or "run" in script.called else min(fits, default=None),
    )


def _file_names(script: Script) -> Iterator[tuple[int, str, str]]:
    """The names of files that Keras 3 refuses (3.12, `saving_api.py`, `model_checkpoint.py`), as far as they are written here."""
    for call in script.calls:
        name = last(call)
        wanted: tuple[str, ...]
        if name == "ModelCheckpoint":
            where, only = given(call, "filepath", 0), given(call, "save_weights_only", 4)
            if only is not None and not isinstance(only, ast.Constant):
                continue
            weights = isinstance(only, ast.Constant) and bool(only.value)
            wanted = (".weights.h5",) if weights else (".keras", ".h5")
        elif name == "save_weights" and isinstance(call.func, ast.Attribute):
            where, wanted = given(call, "filepath", 0), (".weights.h5",)
        elif name == "load_weights" and isinstance(call.func, ast.Attribute):
            where, wanted = given(call, "filepath", 0), (".weights.h5", ".keras", ".h5", ".hdf5")
        elif name == "save" and last(_receiver(call)) in ("Sequential", "Model"):
            where, wanted = given(call, "filepath", 1) or given(call, "filepath", 0), (".keras", ".h5", ".hdf5")
        elif name == "save" and isinstance(call.func, ast.Attribute) and _is_model(script, call.func.value):
            where, wanted = given(call, "filepath", 0), (".keras", ".h5", ".hdf5")
            if given(call, "save_format") is not None or len(call.args) > 1:
                continue
        else:
            continue
        text = script.ending(where)
        if text is not None and not text.endswith(wanted):
            yield call.lineno, text, wanted[0]


def _receiver(call: ast.Call) -> ast.AST:
    """What a method is called on; the call itself if it is none."""
    return call.func.value if isinstance(call.func, ast.Attribute) else call


def _is_model(script: Script, node: ast.expr) -> bool:
    """Whether an expression is a name that the script gives to a Keras model."""
    return isinstance(node, ast.Name) and any(
        last(value) in ("Sequential", "Model", "clone_model") or "model" in last(value).lower()
        for value in script.assigned.get(node.id, ())
        if isinstance(value, ast.Call) and "load" not in dotted(value.func).rpartition("saved_model")[1]
    )


def fixed_threads(script: Script) -> tuple[int, int, int] | None:
    """The line, inter and intra of thread pools whose sizes are plain numbers in the script."""
    names = ("inter_op_parallelism_threads", "intra_op_parallelism_threads")
    for call in script.calls:
        inter, intra = (number_of(given(call, name)) for name in names)
        if inter is not None and intra is not None:
            return call.lineno, inter, intra
    pools = {
        name: (call.lineno, number_of(given(call, "num_threads", 0)))
        for call in script.calls
        for name in names
        if last(call) == f"set_{name}"
    }
    if len(pools) == 2 and all(number is not None for _, number in pools.values()):
        return pools[names[1]][0], pools[names[0]][1] or 0, pools[names[1]][1] or 0
    return None


def session_faults(script: Script) -> Iterator[Fault]:
    """Faults in sessions and training steps in the style of TensorFlow 1."""
    nodes, calls, named = script.nodes, script.calls, script.called
    monitored = bool(named & set(MONITORED))
    if monitored or "StopAtStepHook" in named:
        applied = [call for call in calls if last(call) in ("minimize", "apply_gradients")]
        counted = [call for call in applied if len(call.args) > 1 or given(call, "global_step") is not None]
        unpacked = any(keyword.arg is None for call in applied for keyword in call.keywords)
        if applied and not counted and not unpacked:
            yield Fault(
                rule="no-global-step",
                line=applied[0].lineno,
                message="the steps are not counted, so StopAtStepHook never stops and every checkpoint is of step 0",
                fix="`step = tf.train.get_or_create_global_step()`, then `minimize(loss, global_step=step)`",
            )
    plain = [call for call in calls if re.fullmatch(r"\w+\.(compat\.v1\.)?(Interactive)?Session", dotted(call.func))]
    if "BroadcastGlobalVariablesHook" in named and plain and not named & set(RUN_HOOKS):
        yield Fault(
            rule="hooks-unread",
            line=plain[0].lineno,
            message="a plain session runs no hooks, so nothing is broadcast and the ranks train from different weights",
            fix="`with tf.train.MonitoredTrainingSession(hooks=hooks, config=config) as session:`",
        )
    if "BroadcastGlobalVariablesHook" in named:
        for call in calls:
            unpacked = any(word.arg is None for word in call.keywords)
            if last(call) == "MonitoredTrainingSession" and given(call, "hooks", 4) is None and not unpacked:
                yield Fault(
                    rule="hooks-unread",
                    line=call.lineno,
                    message="this session gets no `hooks`, so nothing is broadcast and the ranks train from other weights",
                    fix="`MonitoredTrainingSession(hooks=hooks, …)`",
                )
    plainly, old = _imports(nodes)
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr == "session" and dotted(node.value) in plainly | old:
            yield Fault(
                rule="no-such-name",
                line=node.lineno,
                message=f"`{dotted(node)}` is in no TensorFlow: `AttributeError`",
                fix=f"`{dotted(node.value)}.Session`, in TensorFlow 2 `tf.compat.v1.Session`",
            )
        if isinstance(node, ast.With) and any(last(item.context_expr) in MONITORED for item in node.items):
            yield from _within(node.body, plainly | old)


def _within(body: Sequence[ast.AST], aliases: set[str]) -> Iterator[Fault]:
    """Calls within a monitored session that would change its finalized graph."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            continue
        if isinstance(node, ast.With) and any(last(item.context_expr) == "as_default" for item in node.items):
            continue  # another graph
        if isinstance(node, ast.Call):
            alias, _, name = dotted(node.func).partition(".")
            if alias in aliases and ADDS_TO_GRAPH.fullmatch(name.removeprefix("compat.")):
                yield Fault(
                    rule="graph-changed",
                    line=node.lineno,
                    message="the session has finalized its graph: `Graph is finalized and cannot be modified`",
                    fix=f"call `{alias}.{name}` before the session, and run its result in the session",
                )
        yield from _within(list(ast.iter_child_nodes(node)), aliases)


def callback_faults(script: Script) -> Iterator[Fault]:
    """Faults in the order of the Keras callbacks: the broadcast must come first, averages before their readers."""
    nodes = script.nodes
    made = {
        target.id: node.value
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for listed in nodes:
        if not isinstance(listed, ast.List | ast.Tuple):
            continue
        order = [made.get(item.id, item) if isinstance(item, ast.Name) else item for item in listed.elts]
        names = {last(callback) for callback in order}
        if not {BROADCAST, AVERAGE} & names:
            continue
        parent = script.parents.get(id(listed))
        order = [*order, *_appended(nodes, parent)]
        yield from _in_order(order)


def _appended(nodes: Sequence[ast.AST], assigned: ast.AST | None) -> list[ast.expr]:
    """The items that are appended to a named list until the name is assigned again."""
    if not isinstance(assigned, ast.Assign) or not isinstance(assigned.targets[0], ast.Name):
        return []
    name = assigned.targets[0].id
    again = [
        node.lineno
        for node in nodes
        if isinstance(node, ast.Assign) and node.lineno > assigned.lineno and last(node.targets[0]) == name
    ]
    calls = [
        node
        for node in nodes
        if isinstance(node, ast.Call)
        and dotted(node.func) == f"{name}.append"
        and node.args
        and assigned.lineno < node.lineno < min(again, default=node.lineno + 1)
    ]
    return [call.args[0] for call in sorted(calls, key=lambda call: call.lineno)]


def _in_order(order: Sequence[ast.expr]) -> Iterator[Fault]:
    names = [last(callback) for callback in order]
    if BROADCAST in names:
        before = [name for name in names[: names.index(BROADCAST)] if name in KNOWN_CALLBACKS]
        if before:
            yield Fault(
                rule="callback-order",
                line=order[names.index(BROADCAST)].lineno,
                message=f"`{before[0]}` comes before the broadcast, when the ranks still have different weights",
                fix=f"put `{BROADCAST}(0)` first in the list",
            )
    if AVERAGE in names:
        before = [name for name in names[: names.index(AVERAGE)] if name in READ_METRICS]
        if before:
            yield Fault(
                rule="callback-order",
                line=order[names.index(AVERAGE)].lineno,
                message=f"`{before[0]}` comes before the average, so it reads the metrics of its own rank only",
                fix=f"put `{AVERAGE}()` before it",
            )
