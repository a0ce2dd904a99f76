"""What TensorFlow and Keras make of a training script: names of version 1, sessions, callbacks in order, input that goes unused.

Read from the syntax tree alone. A rule is silent where it would have to guess: a script that asks for `tf.__version__` knows
what it does, and a callback of somebody's own may stand anywhere.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

# In TensorFlow 1.15 and not in 2.2, 2.15 or 2.21: each was looked up there.
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
# Calls of TensorFlow that put something into the graph.
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
WRITE_FILES = ("ModelCheckpoint", "TensorBoard", "CSVLogger")
MAKE_DATA = ("from_tensor_slices", "from_generator", "from_tensors", "TFRecordDataset", "TextLineDataset")
FEWEST_BYTES = 16384
"""A `buffer_size` of TFRecordDataset below this was meant as a number of records: it is in bytes."""


class Fault(NamedTuple):
    """A fault: the rule's name, the line, what is wrong there, and the fix."""

    rule: str
    line: int
    message: str
    fix: str


class Needs(NamedTuple):
    """What decides with which TensorFlow a script works; each None, or a line with the text it is about."""

    old_name: tuple[int, str] | None
    """A name of TensorFlow 1 that is not taken from `tf.compat.v1`."""
    eager_placeholder: int | None
    """A placeholder of `tf.compat.v1`, where nothing leaves eager execution."""
    run_function: int | None
    """`experimental_run_tf_function` handed to `compile`, by a script that does not ask for Keras 2 itself."""
    compiles: int | None
    """A `compile` without it."""
    reads: tuple[int, int] | None
    """The line and number of `num_parallel_reads`."""


def dotted(node: ast.AST) -> str:
    """`tf.train.Saver` of that expression; empty where it is no plain name."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join((node.id, *reversed(parts))) if isinstance(node, ast.Name) else ""


def last(node: ast.AST) -> str:
    """The last name of what a call calls, of an attribute, or of a name."""
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _given(call: ast.Call, name: str) -> ast.expr | None:
    return next((one.value for one in call.keywords if one.arg == name), None)


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


def needs(nodes: Sequence[ast.AST]) -> Needs:
    """What a script needs of its TensorFlow."""
    plain, old = _imports(nodes)
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    # Whoever asks for the version, or for single names, decides by it.
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
    compiled = [call for call in compiled if _given(call, "optimizer") is not None or _given(call, "loss") is not None]
    flagged = [call.lineno for call in compiled if _given(call, "experimental_run_tf_function") is not None]
    plainly = [call.lineno for call in compiled if not any(one.arg is None for one in call.keywords)]
    legacy = any(isinstance(node, ast.Constant) and node.value == "TF_USE_LEGACY_KERAS" for node in nodes)
    reads = [
        (call.lineno, value.value)
        for call in calls
        if last(call) == "TFRecordDataset"
        and isinstance(value := _given(call, "num_parallel_reads"), ast.Constant)
        and isinstance(value.value, int)
    ]
    return Needs(
        old_name=None if decides else min(olds, default=None),
        eager_placeholder=None if decides or lazy else min(holders, default=None),
        run_function=None if decides or legacy else min(flagged, default=None),
        compiles=None if decides or flagged else min(plainly, default=None),
        reads=max(reads, key=lambda one: one[1], default=None),
    )


def sessions(nodes: Sequence[ast.AST]) -> Iterator[Fault]:
    """Sessions and steps of TensorFlow 1's style."""
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    named = {last(call) for call in calls}
    monitored = bool(named & set(MONITORED))
    if monitored or "StopAtStepHook" in named:
        applied = [call for call in calls if last(call) in ("minimize", "apply_gradients")]
        counted = [call for call in applied if len(call.args) > 1 or _given(call, "global_step") is not None]
        if applied and not counted and not any(one.arg is None for call in applied for one in call.keywords):
            yield Fault(
                rule="no-global-step",
                line=applied[0].lineno,
                message="nothing counts the steps: a StopAtStepHook never stops, and every checkpoint is that of step 0",
                fix="`step = tf.train.get_or_create_global_step()`, then `minimize(loss, global_step=step)`",
            )
    plain = [call for call in calls if re.fullmatch(r"\w+\.(compat\.v1\.)?(Interactive)?Session", dotted(call.func))]
    if "BroadcastGlobalVariablesHook" in named and plain and not named & set(RUN_HOOKS):
        yield Fault(
            rule="hooks-unread",
            line=plain[0].lineno,
            message="a plain session runs no hooks: nothing is broadcast, ranks train from different weights",
            fix="`with tf.train.MonitoredTrainingSession(hooks=hooks, config=config) as session:`",
        )
    plainly, old = _imports(nodes)
    for node in nodes:
        if isinstance(node, ast.With) and any(last(one.context_expr) in MONITORED for one in node.items):
            yield from _within(node.body, plainly | old)


def _within(body: Sequence[ast.AST], aliases: set[str]) -> Iterator[Fault]:
    """Calls within a monitored session that would change its graph, which it has finalized."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            continue
        if isinstance(node, ast.With) and any(last(one.context_expr) == "as_default" for one in node.items):
            continue  # another graph
        if isinstance(node, ast.Call):
            alias, _, name = dotted(node.func).partition(".")
            if alias in aliases and ADDS_TO_GRAPH.fullmatch(name.removeprefix("compat.")):
                yield Fault(
                    rule="graph-changed",
                    line=node.lineno,
                    message="the session has finalized its graph: `Graph is finalized and cannot be modified`",
                    fix=f"call `{alias}.{name}` before the session, and run what it returns",
                )
        yield from _within(list(ast.iter_child_nodes(node)), aliases)


def callbacks(nodes: Sequence[ast.AST]) -> Iterator[Fault]:
    """Keras's callbacks under Horovod: what is broadcast comes first, averages before who reads them, writers on rank 0."""
    made = {
        target.id: node.value
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    parents = {id(child): node for node in nodes for child in ast.iter_child_nodes(node)}
    for listed in nodes:
        if not isinstance(listed, ast.List | ast.Tuple):
            continue
        order = [made.get(one.id, one) if isinstance(one, ast.Name) else one for one in listed.elts]
        if not {BROADCAST, AVERAGE} & {last(one) for one in order}:
            continue
        parent = parents.get(id(listed))
        if BROADCAST in {last(one) for one in order} and not _by_rank(listed, parents):
            yield from _on_all_ranks(order)
        order = [*order, *_appended(nodes, parent)]
        yield from _in_order(order)


def _by_rank(node: ast.AST, parents: dict[int, ast.AST]) -> bool:
    """Whether a condition about the rank stands over a node."""
    over = parents.get(id(node))
    while over is not None:
        if isinstance(over, ast.If | ast.IfExp) and "rank" in {last(one) for one in ast.walk(over.test)}:
            return True
        over = parents.get(id(over))
    return False


def _appended(nodes: Sequence[ast.AST], assigned: ast.AST | None) -> list[ast.expr]:
    """What is appended to a list by its name, until it is assigned again."""
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
    return [call.args[0] for call in sorted(calls, key=lambda one: one.lineno)]


def _in_order(order: Sequence[ast.expr]) -> Iterator[Fault]:
    names = [last(one) for one in order]
    if BROADCAST in names:
        before = [name for name in names[: names.index(BROADCAST)] if name in KNOWN_CALLBACKS]
        if before:
            yield Fault(
                rule="callback-order",
                line=order[names.index(BROADCAST)].lineno,
                message=f"`{before[0]}` comes before the broadcast, and acts on weights that ranks do not share yet",
                fix=f"`{BROADCAST}(0)` as the first of the list",
            )
    if AVERAGE in names:
        before = [name for name in names[: names.index(AVERAGE)] if name in READ_METRICS]
        if before:
            yield Fault(
                rule="callback-order",
                line=order[names.index(AVERAGE)].lineno,
                message=f"`{before[0]}` comes before it, and reads the metrics of its own rank only",
                fix=f"`{AVERAGE}()` before it",
            )


def _on_all_ranks(order: Sequence[ast.expr]) -> Iterator[Fault]:
    for one in order:
        if (
            isinstance(one, ast.Call)
            and last(one) in WRITE_FILES
            and "rank" not in {last(part) for part in ast.walk(one)}
        ):
            yield Fault(
                rule="all-ranks-write",
                line=one.lineno,
                message=f"every rank has this `{last(one)}`, and writes the same files",
                fix="append it `if hvd.rank() == 0:`, as the last one",
            )


def inputs(nodes: Sequence[ast.AST]) -> Iterator[Fault]:
    """Data sets: built and not used, or buffered by a number that is none of bytes."""
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    fits = [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "fit" and call.args]
    sets: dict[str, int] = {}
    own: set[int] = set()  # uses of a name in its own assignment: `data = data.batch(32)`
    for node in nodes:
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            continue
        name = node.targets[0].id
        if any(last(one) in MAKE_DATA for one in ast.walk(node.value) if isinstance(one, ast.Call)):
            sets.setdefault(name, node.lineno)
        own |= {id(one) for one in ast.walk(node.value) if isinstance(one, ast.Name) and one.id == name}
    used = {
        node.id
        for node in nodes
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in own
    }
    for name, line in sets.items():
        if fits and name not in used:
            yield Fault(
                rule="dataset-unused",
                line=line,
                message=f"`{name}` is built and never used: `fit` in line {fits[0].lineno} trains on something else",
                fix=f"`model.fit({name}, …)`",
            )
    for call in calls:
        size = _given(call, "buffer_size")
        if (
            last(call) == "TFRecordDataset"
            and isinstance(size, ast.Constant)
            and isinstance(size.value, int)
            and 0 < size.value < FEWEST_BYTES
        ):
            yield Fault(
                rule="buffer-in-bytes",
                line=call.lineno,
                message=f"`buffer_size` of TFRecordDataset is in bytes: {size.value} are less than a read of any disk",
                fix="the bytes of some batches, such as `8 << 20`, or leave it out",
            )
