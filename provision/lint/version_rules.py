"""The rules about the TensorFlow version of the job, which is read from the names of the loaded modules.

A program that reads `tf.__version__`, or tests for single names, handles several versions itself.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from provision.knowledge.frameworks.tensorflow import TENSORFLOW
from provision.knowledge.whole_numbers import whole_number
from provision.launch.rank_threads import INTER
from provision.lint.job_script import JobScript
from provision.lint.rule import Found, Shown, advice, error
from provision.lint.syntax import Syntax, dotted, given, last, number_of, unpacks, value_of
from provision.lint.tensorflow_rules import tensorflow_names
from provision.lint.training_script import TrainingProgram

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
# Names that TensorFlow 2 has but 1.15 does not have. Each was looked up in the wheel of 1.15.5.
TF2_NAMES = re.compile(
    r"config\.(list_physical_devices|list_logical_devices|[gs]et_visible_devices)|random\.(set_seed|Generator)|data\.AUTOTUNE"
    r"|summary\.create_file_writer|optimizers\.\w+|losses\.[A-Z]\w*[a-z]|metrics\.(Mean|Sum|Accuracy|SparseCategoricalAccuracy)"
    r"|distribute\.experimental\.CommunicationOptions|experimental\.numpy.*|keras\.utils\.set_random_seed"
)
# A program looks for names in these modules, and in `tensorflow`, to find out which TensorFlow it has.
OF_VERSION = ("", "compat", "compat.v1", "config", "train", "random")
KERAS_FILES = (".keras", ".h5", ".hdf5")


class Loaded(NamedTuple):
    """The TensorFlow of a job: the module or environment, its version, and whether Keras is tf-keras."""

    module: str
    version: tuple[int, ...]
    tf_keras: bool

    def __str__(self) -> str:
        return f"`{self.module}` is loaded"


def tensorflow_of(script: JobScript) -> Loaded | None:
    """The module or environment with TensorFlow; None if no name gives a version."""
    sources = [command for command in script.commands if command.name in ("source", ".") and len(command.words) > 1]
    activated = [script.filled(command.words[1]) for command in sources]
    found = TENSORFLOW.module_of((*(name for _, name in script.modules), *activated))
    if found is None:
        return None
    return Loaded(*found, "tf-keras" in found[0] or script.set_to("TF_USE_LEGACY_KERAS") in ("1", "true", "True"))


def _of_version(
    job: JobScript,
    program: TrainingProgram,
    least: tuple[int, ...],
    below: tuple[int, ...] = (99,),
    *,
    keras_3: bool = False,
) -> Loaded | None:
    """The TensorFlow of the job, if it is such a one and the program does not handle several; `keras_3`: it uses Keras 3."""
    loaded, script = tensorflow_of(job), program.script
    plain, _ = tensorflow_names(script)
    tests = (call for call in script.calls_of("hasattr", "getattr") if call.args)
    versions = [node for node in script.of(ast.Attribute) if node.attr in ("__version__", "VERSION")]
    printed = [node for node in versions if script.is_inside(node, ast.JoinedStr, ast.Expr)]
    # A test for a name of `tf.summary` and the like is about that name only.
    asked = (dotted(call.args[0]).partition(".") for call in tests)
    decides = len(versions) > len(printed) or any(tf in plain and part in OF_VERSION for tf, _, part in asked)
    if loaded is None or decides or not least <= loaded.version < below:
        return None
    if keras_3 and (loaded.tf_keras or "TF_USE_LEGACY_KERAS" in script.texts):
        return None
    return loaded


@error(
    "`{0}` is a name of TensorFlow 1, which {1[0]}.{1[1]} does not have",
    "`import tensorflow.compat.v1 as tf`, then `tf.disable_v2_behavior()`",
)
def tf1_names(job: JobScript, program: TrainingProgram, script: Syntax) -> Found:
    """Names of TensorFlow 1 under TensorFlow 2."""
    loaded, (plain, _) = _of_version(job, program, (2,)), tensorflow_names(script)
    names = ((node.lineno, *dotted(node).partition(".")) for node in script.of(ast.Attribute))
    olds = [
        (line, alias + dot + name) for line, alias, dot, name in names if alias in plain and TF1_NAMES.fullmatch(name)
    ]
    if loaded and olds:
        line, name = min(olds)
        yield Shown(line, loaded), name, loaded.version


@error(
    "`{0}` is of TensorFlow 2: {1[0]}.{1[1]} {2}",
    "a program for TensorFlow 1 (`provision example graph`), or a module of TensorFlow 2",
)
def tf2_names(job: JobScript, program: TrainingProgram, script: Syntax) -> Found:
    """A program of TensorFlow 2 under TensorFlow 1."""
    loaded = _of_version(job, program, (1,), (2,))
    plain, _ = tensorflow_names(script)
    found = [(n.lineno, dotted(n)) for n in script.of(ast.Attribute) if dotted(n).partition(".")[0] in plain]
    names = [(line, name, "does not have it") for line, name in found if TF2_NAMES.fullmatch(name.partition(".")[2])]
    if not script.called & {"enable_eager_execution", "enable_v2_behavior", "function"}:
        eager = "does not run eagerly, so a loop with it trains nothing"
        names += [(line, name, eager) for line, name in found if name.endswith(".GradientTape")]
    if loaded and names:
        line, name, why = min(names)
        yield Shown(line, loaded), name, loaded.version, why


@error(
    "a placeholder needs a graph, but TensorFlow 2 runs eagerly: `RuntimeError`",
    "`tf.compat.v1.disable_v2_behavior()` after the imports, or `with tf.Graph().as_default():`",
)
def tf1_eager(job: JobScript, program: TrainingProgram, script: Syntax) -> Found:
    """A placeholder while TensorFlow runs eagerly."""
    shown = _of_version(job, program, (2,))
    _, old = tensorflow_names(script)
    holders = [
        call
        for call in script.calls_of("placeholder")
        if dotted(call.func).partition(".")[0] in old or ".compat.v1." in dotted(call.func)
    ]
    if shown and holders and not script.called & {"disable_v2_behavior", "disable_eager_execution", "as_default"}:
        yield (Shown(min(call.lineno for call in holders), shown),)


@error("{0}", "{1}")
def run_tf_function(job: JobScript, program: TrainingProgram, script: Syntax) -> Found:
    """`experimental_run_tf_function`, missing or not known."""
    keras_3, early = _of_version(job, program, (2, 16), keras_3=True), _of_version(job, program, (2,), (2, 2))
    compiles = script.methods("compile")
    calls = [call for call in compiles if given(call, "optimizer") is not None or given(call, "loss") is not None]
    flagged = [call.lineno for call in calls if given(call, "experimental_run_tf_function") is not None]
    plainly = [call.lineno for call in calls if not unpacks(call)]
    if keras_3 and flagged:
        why = "Keras 3 does not know `experimental_run_tf_function`: `TypeError`"
        yield Shown(min(flagged), keras_3), why, "remove it; from TensorFlow 2.2 on it has no effect"
    if early and program.horovod and plainly and not flagged:
        why = "Keras of TensorFlow 2.0 and 2.1 bypasses Horovod's optimizer, so each rank trains alone"
        yield Shown(min(plainly), early), why, "pass `experimental_run_tf_function=False` to `compile`"


@error("Keras 3 refuses the name `{0}`: `ValueError`", "let the name end in `{1}`{2}")
def keras_3_names(job: JobScript, program: TrainingProgram, script: Syntax) -> Found:
    """Names of files that Keras 3 refuses."""
    shown = _of_version(job, program, (2, 16), keras_3=True)
    for call, where, wanted in _files(script) if shown else ():
        name = script.ending(where)
        if name is not None and not name.endswith(wanted):
            folder = "; for a folder in the format of TensorFlow use `model.export(…)`"
            yield Shown(call, str(shown)), name, wanted[0], folder if wanted[0] == ".keras" else ""


@error(
    "`load_data` of Keras 3 takes the name of a file, not a path: `ValueError`",
    "read the file with `numpy.load`, or copy it to `$KERAS_HOME/datasets` and give its name",
)
def keras_3_path(job: JobScript, program: TrainingProgram, script: Syntax) -> Found:
    """A path for `load_data`, which Keras 3 refuses."""
    shown = _of_version(job, program, (2, 16), keras_3=True)
    for call in script.calls_of("load_data") if shown else ():
        where = given(call, "path", 0)
        parts = [part for value in script.sources(where) for part in ast.walk(value)] if where else []
        if any("/" in str(value_of(part) or "") or last(part) == "join" for part in parts):
            yield (Shown(call, str(shown)),)


def _files(script: Syntax) -> Iterator[tuple[ast.Call, ast.expr | None, tuple[str, ...]]]:
    """The calls with names of files, and the endings that Keras accepts (3.12, `saving_api.py`, `model_checkpoint.py`)."""
    for call in script.calls_of("ModelCheckpoint"):
        only = given(call, "save_weights_only", 4)
        if only is None or isinstance(only, ast.Constant):
            yield call, given(call, "filepath", 0), (".weights.h5",) if value_of(only) else (".keras", ".h5")
    for call in script.methods("save_weights"):
        yield call, given(call, "filepath", 0), (".weights.h5",)
    for call in script.methods("load_weights"):
        yield call, given(call, "filepath", 0), (".weights.h5", *KERAS_FILES)
    for call in script.methods("save"):
        model = call.func.value if isinstance(call.func, ast.Attribute) else call
        if _is_class(script, model):
            yield call, given(call, "filepath", 1) or given(call, "filepath", 0), KERAS_FILES
        elif _is_model(script, model) and given(call, "save_format") is None and len(call.args) <= 1:
            yield call, given(call, "filepath", 0), KERAS_FILES


def _is_class(script: Syntax, node: ast.AST) -> bool:
    """Whether an expression is Keras's class of models itself, not one of its models."""
    return (
        last(node) in ("Sequential", "Model") and not isinstance(node, ast.Call) and last(node) not in script.assigned
    )


@error(
    "`{0}` saves no model: it is a method of the class, and gets a name where it needs the model (`TypeError`)",
    "`model.save(…)`, with the variable of the model",
)
def unbound_save(script: Syntax) -> Found:
    """A method of the class of models that is called without a model."""
    for call in script.calls_of("save", "save_weights"):
        if isinstance(call.func, ast.Attribute) and _is_class(script, call.func.value) and len(call.args) == 1:
            text = isinstance(call.args[0], ast.JoinedStr | ast.BinOp) or script.ending(call.args[0]) is not None
            if text and not call.keywords:
                yield call, dotted(call.func)


def _is_model(script: Syntax, node: ast.AST) -> bool:
    """Whether an expression is a name that the script gives to a Keras model."""
    return isinstance(node, ast.Name) and any(
        last(value) in ("Sequential", "Model", "clone_model") or "model" in last(value).lower()
        for value in script.assigned.get(node.id, ())
        if isinstance(value, ast.Call) and "load" not in dotted(value.func).rpartition("saved_model")[1]
    )


@error(
    "`tf.distribute.MultiWorkerMirroredStrategy` came with TensorFlow 2.4: `AttributeError`",
    "`tf.distribute.experimental.MultiWorkerMirroredStrategy` (from 2.0 on), or a newer TensorFlow",
)
def multiworker_version(job: JobScript, program: TrainingProgram, script: Syntax) -> Found:
    """MultiWorkerMirroredStrategy with a TensorFlow that is too old."""
    shown = _of_version(job, program, (0,), (2, 4))
    workers = script.calls_of("MultiWorkerMirroredStrategy")
    stable = [call.lineno for call in workers if "experimental" not in dotted(call.func)]
    if shown and stable:
        yield (Shown(min(stable), shown),)


@error(
    "`fit` of Keras 3 fails under MultiWorkerMirroredStrategy",
    "a module with tf-keras and `export TF_USE_LEGACY_KERAS=1`, or your own loop with `strategy.run`",
)
def multiworker_keras_3(job: JobScript, program: TrainingProgram, script: Syntax) -> Found:
    """`fit` of Keras 3 under MultiWorkerMirroredStrategy."""
    shown = _of_version(job, program, (2, 16), keras_3=True)
    fits = [call.lineno for call in script.methods("fit")]
    if shown and fits and "MultiWorkerMirroredStrategy" in script.called and "run" not in script.called:
        yield (Shown(min(fits), shown),)


@advice(
    "the {0} parallel reads in line {1} of `{2}` need {0} more threads of this pool",
    "`num_parallel_reads={3}`, or more threads of this pool and fewer of the other one",
)
def parallel_reads(job: JobScript, program: TrainingProgram, script: Syntax) -> Found:
    """More parallel reads than threads."""
    calls = script.calls_of("TFRecordDataset")
    reads = [(number_of(given(call, "num_parallel_reads")) or 0, call.lineno) for call in calls]
    most, line = max(reads, default=(0, 0), key=lambda read: read[0])
    threads = whole_number(job.set_to(INTER))
    if threads is not None and most > 1 and threads < most:
        yield job.variables[INTER], most, line, program.file, job.set_to(INTER)
