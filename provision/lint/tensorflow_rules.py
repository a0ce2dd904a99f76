"""The rules about TensorFlow and Keras in a training script: sessions, losses, the order of callbacks, strategies.

They use the syntax tree only. A rule reports nothing if it would have to guess: a callback that the user wrote may be anywhere in
the list.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from provision.lint.rule import Found, Shown, advice, error, warning
from provision.lint.syntax import (
    DEFINITIONS,
    Syntax,
    arguments,
    dotted,
    given,
    is_environ,
    last,
    number_of,
    unpacks,
    value_of,
)
from provision.lint.training_script import TrainingProgram

MONITORED = ("MonitoredTrainingSession", "MonitoredSession", "SingularMonitoredSession")
RUN_HOOKS = {*MONITORED, "Estimator", "EstimatorSpec", "train_and_evaluate", "model_to_estimator"}
# Calls of TensorFlow that add something to the graph.
ADDS_TO_GRAPH = re.compile(
    r"(v1\.)?(constant|placeholder|Variable|get_variable|matmul|cast|argmax|equal|add|subtract|multiply|square|gradients"
    r"|reduce_\w+|global_variables_initializer|assign|math\.\w+|nn\.\w+|layers\.\w+|losses\.\w+|train\.\w+Optimizer"
    r"|train\.Saver|train\.get_or_create_global_step|summary\.(scalar|histogram|image|text|audio|merge|merge_all))"
)
BROADCAST, AVERAGE = "BroadcastGlobalVariablesCallback", "MetricAverageCallback"
# Callbacks that read the metrics, or change what the first batch is trained with.
READ_METRICS = ("ReduceLROnPlateau", "EarlyStopping", "TensorBoard", "ModelCheckpoint", "CSVLogger")
OF_RATE = ("LearningRateWarmupCallback", "LearningRateScheduleCallback", "LearningRateScheduler")
PYTHON_2 = re.compile(r"\s*(print\s+[^(=]|except [\w.]+, \w+:|raise \w+, )")


def tensorflow_names(script: Syntax) -> tuple[set[str], set[str]]:
    """The names under which TensorFlow is imported, and those of its `compat.v1`."""
    plain: set[str] = set()
    old: set[str] = set()
    for node in (*script.of(ast.Import), *script.of(ast.ImportFrom), *script.of(ast.Assign)):
        match node:
            case ast.Import(names=names):
                plain |= {alias.asname or alias.name for alias in names if alias.name == "tensorflow"}
                old |= {alias.asname for alias in names if alias.name == "tensorflow.compat.v1" and alias.asname}
            case ast.ImportFrom(module="tensorflow.compat", names=names):
                old |= {alias.asname or alias.name for alias in names if alias.name == "v1"}
            case ast.Assign(targets=targets, value=value) if dotted(value).endswith(".compat.v1"):
                old |= {target.id for target in targets if isinstance(target, ast.Name)}
    return plain - old, old


@error("{0}", "{1}")
def no_python(program: TrainingProgram) -> Found:
    """A text that is not valid Python 3."""
    if program.error is None:
        return
    line, file = getattr(program.error, "lineno", None) or 1, program.file
    rows = program.source[line - 1 : line] or ("",)
    shown = str(getattr(program.error, "msg", program.error)) or "it is too deeply nested"
    if PYTHON_2.match(rows[0]):
        old = "this is Python 2, for which neither TensorFlow nor pip is maintained"
        yield Shown(line, shown), old, f"`2to3 -w {file}` converts most of it"
    else:
        yield Shown(line, shown), "this is not valid Python 3", f"`python3 -m py_compile {file}` shows the error"


@error(
    "the steps are not counted, so StopAtStepHook never stops and every checkpoint is of step 0",
    "`step = tf.train.get_or_create_global_step()`, then `minimize(loss, global_step=step)`",
)
def no_global_step(script: Syntax) -> Found:
    """Steps that are not counted."""
    if script.called & {*MONITORED, "StopAtStepHook"}:
        applied = script.calls_of("minimize", "apply_gradients")
        counts = any(len(call.args) > 1 or given(call, "global_step") or unpacks(call) for call in applied)
        if applied and not counts:
            yield (applied[0],)


@error("{0}, so nothing is broadcast and the ranks train from {1} weights", "{2}")
def hooks_unread(script: Syntax) -> Found:
    """Hooks that no session runs."""
    if "BroadcastGlobalVariablesHook" not in script.called:
        return
    plain = [
        call for call in script.calls if re.fullmatch(r"\w+\.(compat\.v1\.)?(Interactive)?Session", dotted(call.func))
    ]
    if plain and not script.called & RUN_HOOKS:
        fix = "`with tf.train.MonitoredTrainingSession(hooks=hooks, config=config) as session:`"
        yield plain[0], "a plain session runs no hooks", "different", fix
    for call in script.calls_of("MonitoredTrainingSession"):
        if given(call, "hooks", 4) is None and not unpacks(call):
            yield call, "this session gets no `hooks`", "other", "`MonitoredTrainingSession(hooks=hooks, …)`"


@error("`{0}.session` is in no TensorFlow: `AttributeError`", "`{0}.Session`, in TensorFlow 2 `tf.compat.v1.Session`")
def no_such_name(script: Syntax) -> Found:
    """`tf.session`, which no TensorFlow has."""
    plain, old = tensorflow_names(script)
    for node in script.of(ast.Attribute):
        if node.attr == "session" and dotted(node.value) in plain | old:
            yield node, dotted(node.value)


@error(
    "the session has finalized its graph: `Graph is finalized and cannot be modified`",
    "call `{0}` before the session, and run its result in the session",
)
def graph_changed(script: Syntax) -> Found:
    """A graph that is changed after it was finalized."""
    plain, old = tensorflow_names(script)
    for node in script.of(ast.With):
        for call in (
            _calls_within(node.body) if any(last(item.context_expr) in MONITORED for item in node.items) else ()
        ):
            alias, _, name = dotted(call.func).partition(".")
            if alias in plain | old and ADDS_TO_GRAPH.fullmatch(name.removeprefix("compat.")):
                yield call, dotted(call.func)


def _calls_within(body: Sequence[ast.AST]) -> Iterator[ast.Call]:
    """The calls that are carried out in these statements, apart from those on another graph."""
    for node in body:
        other_graph = isinstance(node, ast.With) and any(last(item.context_expr) == "as_default" for item in node.items)
        if other_graph or isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            continue
        if isinstance(node, ast.Call):
            yield node
        yield from _calls_within(list(ast.iter_child_nodes(node)))


def _ordered_callbacks(script: Syntax) -> Iterator[tuple[list[ast.expr], list[str]]]:
    """The lists of callbacks with one of Horovod's, and their names, in the order in which Keras runs them."""
    made = {
        target.id: node.value
        for node in script.of(ast.Assign)
        if isinstance(node.value, ast.Call)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for listed in (node for node in script.nodes if isinstance(node, ast.List | ast.Tuple)):
        order = [made.get(item.id, item) if isinstance(item, ast.Name) else item for item in listed.elts]
        if {BROADCAST, AVERAGE} & {last(callback) for callback in order}:
            order += _appended(script, script.parents.get(id(listed)))
            yield order, [last(callback) for callback in order]


def _appended(script: Syntax, assigned: ast.AST | None) -> list[ast.expr]:
    """The items that are appended to a named list."""
    name = last(assigned.targets[0]) if isinstance(assigned, ast.Assign) else ""
    calls = [call for call in script.methods("append") if name and dotted(call.func) == f"{name}.append" and call.args]
    return [call.args[0] for call in sorted(calls, key=lambda call: call.lineno)]


@warning("`{0}` comes before the {1}", "put `{2}")
def callback_order(script: Syntax) -> Found:
    """Callbacks in an order that makes ranks differ."""
    first = (BROADCAST, (*READ_METRICS, AVERAGE, *OF_RATE))
    for order, names in _ordered_callbacks(script):
        for callback, later in (first, (AVERAGE, READ_METRICS)):
            place = names.index(callback) if callback in names else 0
            for name in [name for name in names[:place] if name in later][:1]:
                why = "average, so it reads the metrics of its own rank only", f"{AVERAGE}()` before it"
                if callback == BROADCAST:
                    why = "broadcast, when the ranks still have different weights", f"{BROADCAST}(0)` first in the list"
                yield order[place], name, *why


@error("a variable of the environment is text, which is never equal to a number", "`int(os.environ[…])`")
def text_is_no_number(script: Syntax) -> Found:
    """A variable of the environment that is compared with a number."""
    for node in script.of(ast.Compare):
        sides = [node.left, *node.comparators]
        numbers = [value for side in sides if isinstance(value := value_of(side), int) and not isinstance(value, bool)]
        if numbers and any(_is_variable(side) for side in sides):
            yield (node,)


def _is_variable(node: ast.expr) -> bool:
    """Whether an expression is a variable of the environment. `get` with a default that is a number may give that number."""
    match node:
        case ast.Subscript(value=value):
            return is_environ(value)
        case ast.Call(func=ast.Attribute(attr=name, value=value), args=words):
            plain = len(words) < 2 or (isinstance(words[1], ast.Constant) and isinstance(words[1].value, str | None))
            return plain and (name == "getenv" or (name == "get" and is_environ(value)))
        case _:
            return False


@warning(
    "the model ends with softmax, and the loss applies softmax again",
    "remove `activation='softmax'` or `from_logits=True`",
)
def softmax_twice(script: Syntax) -> Found:
    """Softmax in the model and again in the loss."""
    words = script.of(ast.keyword)
    ends = [word for word in words if word.arg == "activation" and value_of(word.value) == "softmax"]
    logits = [word for word in words if word.arg == "from_logits" and value_of(word.value) is True]
    # A loss in one class is not that of a model in another one.
    of_class = {script.class_of(end) for end in ends}
    logits = [word for word in logits if ends and (script.class_of(word) is None or script.class_of(word) in of_class)]
    yield from [(word.value,) for word in logits[:1]]


# A text that a reader was to replace: `<job_id to load checkpoints from>`.
BLANK = re.compile(
    r"(?:^|.*/)<(?=[^<>]*[ _])[^<>]*(?<![A-Za-z])(your|job|id|path|project|user|name|folder|dir)(?![A-Za-z])[^<>]*>"
)


@error("`{0}` is a placeholder", "replace it with your value", name="blank")
def blank_in_program(script: Syntax) -> Found:
    """A placeholder in a training script that was not replaced."""
    for node in script.of(ast.Constant):
        value = node.value if isinstance(node.value, str) else ""
        if BLANK.match(value[:300]) and not isinstance(script.parents.get(id(node)), ast.Expr | ast.JoinedStr):
            outer = next((last(one) for one in script.around(node) if isinstance(one, ast.Call)), "")
            if not re.search(r"print|add_argument|Error|exit|log|warn|info|write|format", outer):
                yield node, value[:100]


@warning("nobody reads the {1} that `{0}` returns: the job ends as if it had trained", "`sys.exit({0}())`")
def exit_unread(script: Syntax) -> Found:
    """A failure that the main function returns, and that does not end the job with a failure."""
    body = [part for node in script.nodes[:1] for part in getattr(node, "body", ())]
    body += [part for node in body if isinstance(node, ast.If) for part in node.body]
    for call in (node.value for node in body if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        for function in (one for one in script.of(ast.FunctionDef) if one.name == last(call)):
            codes = [n.value for n in ast.walk(function) if isinstance(n, ast.Return)]
            failed = [code for code in map(number_of, codes) if code not in (None, 0)]
            if failed and all(code is None or number_of(code) is not None for code in codes):
                yield call, function.name, failed[0]


STRATEGIES = ("MirroredStrategy", "MultiWorkerMirroredStrategy", "CentralStorageStrategy")
MODELS = ("Sequential", "Model", "clone_model", "model_from_json")
SERVERS = re.compile(r".*\b(train|distribute)\.(Server|replica_device_setter)|.*\bParameterServerStrategy(V1|V2)?")


@advice(
    "parameter servers send all weights over gRPC, which is slow on the networks of clusters",
    "Horovod, or `tf.distribute.MultiWorkerMirroredStrategy`",
)
def parameter_server(script: Syntax) -> Found:
    """Parameter servers."""
    yield from [(call,) for call in script.calls if SERVERS.fullmatch(dotted(call.func))][:1]


# Methods by which a program trains without `fit`, or hands the strategy to code that is not understood.
OTHER_USES = {
    *("run", "experimental_run_v2", "experimental_distribute_dataset", "distribute_datasets_from_function", "extended"),
    *("experimental_set_strategy", "RunConfig", "Estimator", "train_distribute", "distribute_strategy"),
}


def _in_scope(script: Syntax, node: ast.AST, depth: int = 4) -> bool:
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
def outside_scope(program: TrainingProgram, script: Syntax) -> Found:
    """A model that is made outside the scope of its strategy."""
    made = script.calls_of(*STRATEGIES)
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


def _fits(script: Syntax) -> tuple[list[ast.Call], int]:
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
def batch_of_all(script: Syntax) -> Found:
    """A batch of fixed size that a strategy divides among GPUs."""
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
def arrays_in_strategy(script: Syntax) -> Found:
    """Arrays instead of a data set under a strategy."""
    arrays = [call for call in _fits(script)[0] if len(call.args) > 1 or given(call, "y") is not None]
    yield from [(call,) for call in arrays[:1]]
