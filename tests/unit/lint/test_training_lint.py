"""The rules about TensorFlow and Keras in a training script: each fault is found at its line, and its fix has no fault."""

from __future__ import annotations

from pathlib import Path

import pytest

import provision
from parts.loops import for_each
from parts.texts import replace_once
from provision.lint.job_script import read_script
from provision.lint.rules import lint_job, lint_program, read_training
from provision.lint.version_rules import tensorflow_of

PROGRAMS = sorted((Path(provision.__file__).parent / "proof" / "programs").glob("*.py"))
# Faults that need the whole program: our programs import from each other, so a single file may seem to have them.
WHOLE_PROGRAM_RULES = {"horovod-not-initialised", "not-distributed", "no-broadcast"}

GRAPH = """\
import tensorflow as tf
import horovod.tensorflow as hvd
hvd.init()
loss = make_loss()
opt = hvd.DistributedOptimizer(tf.train.AdagradOptimizer(0.01 * hvd.size()))
step = tf.train.get_or_create_global_step()
train = opt.minimize(loss, global_step=step)
summary = tf.summary.merge_all()
hooks = [hvd.BroadcastGlobalVariablesHook(0), tf.train.StopAtStepHook(last_step=100)]
where = "/scratch/x" if hvd.rank() == 0 else None
with tf.train.MonitoredTrainingSession(checkpoint_dir=where, hooks=hooks) as session:
    while not session.should_stop():
        session.run(train)
"""
KERAS = """\
import tensorflow as tf
import horovod.tensorflow.keras as hvd
hvd.init()
x_train, y_train = load()
dataset = tf.data.Dataset.from_tensor_slices((x_train, y_train))
dataset = dataset.shard(hvd.size(), hvd.rank()).shuffle(1000).batch(32)
model.compile(optimizer=hvd.DistributedOptimizer(tf.keras.optimizers.Adam()), loss="mse")
callbacks = [
    hvd.callbacks.BroadcastGlobalVariablesCallback(0),
    hvd.callbacks.MetricAverageCallback(),
    tf.keras.callbacks.ReduceLROnPlateau(),
]
if hvd.rank() == 0:
    callbacks.append(tf.keras.callbacks.ModelCheckpoint("x.keras"))
model.fit(dataset, epochs=3, callbacks=callbacks)
"""


def trained(text: str) -> list[tuple[str, int]]:
    """The rules and lines of the findings in a training script."""
    findings = lint_program(read_training(text, "train.py"), None)
    assert all(finding.message and finding.fix for finding in findings)
    return [(finding.rule, finding.line) for finding in findings]


def at(module: str, training: str, *, more: str = "") -> list[tuple[str, str, int]]:
    """The rules, files and lines of the findings in a job that loads this module and starts this training."""
    job = (
        "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --ntasks=1\nset -e\nmodule purge\n"
        f"module load {module}\nmodule list\n{more}srun python train.py\n"
    )
    findings = lint_job(read_script(job, "job.sh"), read_training(training, "train.py"), None, None)
    return [(finding.rule, finding.file, finding.line) for finding in findings]


def test_a_program_whose_horovod_is_started_elsewhere_has_no_fault() -> None:
    for text in (
        "from horovod.spark import run\nrun(train)\n",
        "import horovod.spark.keras as h\nh.KerasEstimator()\n",
    ):
        assert trained(text) == []


@for_each("path", PROGRAMS, ids=lambda path: str(path.name))
def test_our_own_programs_have_no_fault(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert {rule for rule, _ in trained(text)} <= WHOLE_PROGRAM_RULES
    assert at("tensorflow/2.21.0", text, more="unset http_proxy https_proxy\n") == []


# Sessions


RUN, MINIMIZE = "        session.run(train)", "minimize(loss, global_step=step)"


@pytest.mark.parametrize(
    ("old", "new", "rule", "line"),
    [
        (MINIMIZE, "minimize(loss)", "no-global-step", 7),
        (MINIMIZE, "apply_gradients(pairs)", "no-global-step", 7),
        (RUN, "        session.run(tf.reduce_mean(loss))", "graph-changed", 13),
        (RUN, "        session.run(tf.summary.scalar('loss', loss))", "graph-changed", 13),
        (RUN, "        tf.compat.v1.train.Saver().save(session, 'x')", "graph-changed", 13),
        (RUN, "        session.run(tf.global_variables_initializer())", "graph-changed", 13),
    ],
)
def test_a_fault_of_a_session_is_found(old: str, new: str, rule: str, line: int) -> None:
    assert trained(replace_once(GRAPH, old, new)) == [(rule, line)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (MINIMIZE, "minimize(loss, step)"),
        (MINIMIZE, "minimize(loss, **options)"),
        (f"train = opt.{MINIMIZE}", "a = opt.minimize(loss, step)\nb = opt.minimize(other)"),
        (RUN, f"        tf.gfile.MakeDirs('x')\n{RUN}"),
        (RUN, f"        with tf.Graph().as_default():\n            tf.constant(1)\n{RUN}"),
        (RUN, f"        def later():\n            tf.constant(1)\n{RUN}"),
    ],
)
def test_a_correct_session_is_not_reported(old: str, new: str) -> None:
    assert trained(replace_once(GRAPH, old, new)) == []


def test_hooks_that_a_plain_session_does_not_run_are_found() -> None:
    plain = replace_once(GRAPH, "tf.train.MonitoredTrainingSession(checkpoint_dir=where, hooks=hooks)", "tf.Session()")
    assert trained(plain) == [("hooks-unread", 11)]
    both = GRAPH + "with tf.compat.v1.Session() as other:\n    other.run(loss)\n"
    assert trained(both) == [], "the plain session only evaluates after the training"
    assert trained("import tensorflow as tf\nsession = tf.Session()\n") == [], "no hooks, no Horovod"


# Callbacks and data


BROADCAST, AVERAGE = (
    f"    hvd.callbacks.{name},\n" for name in ("BroadcastGlobalVariablesCallback(0)", "MetricAverageCallback()")
)
PLATEAU = "    tf.keras.callbacks.ReduceLROnPlateau(),\n"
LATE = "    tf.keras.callbacks.EarlyStopping(),\n]\ncallbacks.append(hvd.callbacks.MetricAverageCallback())\n"


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        (BROADCAST + AVERAGE, AVERAGE + BROADCAST, ("callback-order", 10)),
        (AVERAGE + PLATEAU, PLATEAU + AVERAGE, ("callback-order", 11)),
        (f"{AVERAGE}{PLATEAU}]\n", LATE, ("callback-order", 12)),
        (PLATEAU, "    tf.keras.callbacks.TensorBoard('logs'),\n", ("all-ranks-write", 11)),
        ("model.fit(dataset, ", "model.fit(x_train, y_train, ", ("dataset-unused", 5)),
    ],
)
def test_a_fault_of_keras_is_found(old: str, new: str, found: tuple[str, int]) -> None:
    assert trained(replace_once(KERAS, old, new)) == [found]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("callbacks = [\n", "mine = Mine()\ncallbacks = [\n    mine,\n"),
        ("    tf.keras.callbacks.ReduceLROnPlateau(),\n", "    tf.keras.callbacks.CSVLogger(f'{hvd.rank()}.csv'),\n"),
        ("model.fit(dataset, ", "model.fit(dataset.repeat(), "),
        ("model.fit(dataset, ", "model.fit(x_train, y_train, validation_data=dataset, "),
        ("model.fit(dataset, ", "train = dataset.prefetch(1)\nmodel.fit(train, "),
    ],
)
def test_a_correct_use_of_keras_is_not_reported(old: str, new: str) -> None:
    assert trained(replace_once(KERAS, old, new)) == []


def test_a_list_of_callbacks_for_rank_0_may_contain_writers() -> None:
    callbacks = KERAS[KERAS.index("callbacks = [") : KERAS.index("model.fit(")]
    by_rank = (
        "first = hvd.callbacks.BroadcastGlobalVariablesCallback(0)\n"
        "if hvd.rank() == 0:\n    callbacks = [first, tf.keras.callbacks.ModelCheckpoint('x.keras')]\n"
        "else:\n    callbacks = [first]\n"
    )
    assert trained(replace_once(KERAS, callbacks, by_rank)) == []
    on_all = replace_once(by_rank, "if hvd.rank() == 0:", "if hvd.size() > 1:")
    assert trained(replace_once(KERAS, callbacks, on_all)) == [("all-ranks-save", 10)]


def test_a_buffer_size_meant_in_records_is_found() -> None:
    text = "import tensorflow as tf\ndata = tf.data.TFRecordDataset(files, buffer_size={})\nmodel.fit(data)\n"
    assert trained(text.format("1000")) == [("buffer-in-bytes", 2)]
    for good in ("8 << 20", "8388608", "None", "size"):
        assert trained(text.format(good)) == []


def test_a_state_of_elastic_horovod_counts_as_a_broadcast() -> None:
    text = "import horovod.tensorflow.keras as hvd\nhvd.init()\nopt = hvd.DistributedOptimizer(opt)\nmodel.fit(data)\n"
    assert [rule for rule, _ in trained(text)] == ["no-broadcast"]
    assert trained(f"{text}state = hvd.elastic.KerasState(model, batch=0)\n") == []


# Against the TensorFlow of the job


@pytest.mark.parametrize(
    ("module", "version"),
    [
        ("tensorflow/2.15.1", (2, 15, 1)),
        ("TensorFlow/2.2.0-fosscuda-2019b-Python-3.7.4", (2, 2, 0)),
        ("tensorflow/intel-1.15.0-py37", (1, 15, 0)),
        ("datascience/tensorflow-1.10", (1, 10)),
        ("Horovod/0.28.1-foss-2022a-CUDA-11.7.0-TensorFlow-2.11.0", (2, 11, 0)),
        ("miniconda-3.6/conda-4.5.12", None),
    ],
)
def test_the_tensorflow_of_a_job_is_read_from_the_module_name(module: str, version: tuple[int, ...] | None) -> None:
    tensorflow = tensorflow_of(read_script(f"module load gcc/12.2.0\nmodule load {module}\n", "job.sh"))
    assert (tensorflow[:2] if tensorflow else None) == ((module, version) if version else None)


def test_names_of_tensorflow_1_are_found_if_the_job_has_2() -> None:
    assert at("tensorflow/2.15.1", GRAPH) == [("tf1-names", "train.py", 5)]
    assert at("tensorflow/intel-1.15.0-py37", GRAPH) == []
    assert at("conda/2021-09-22", GRAPH) == [], "the TensorFlow of this module is unknown"
    for fixed in (
        replace_once(GRAPH, "import tensorflow as tf\n", "import tensorflow.compat.v1 as tf\n"),
        replace_once(GRAPH, "import tensorflow as tf\n", "import tensorflow as tf\ntf = tf.compat.v1\n"),
        replace_once(GRAPH, "hvd.init()\n", "hvd.init()\nif tf.__version__.startswith('2'):\n    tf = tf.compat.v1\n"),
    ):
        assert at("tensorflow/2.15.1", fixed) == []


def test_a_placeholder_without_a_graph_is_found() -> None:
    text = "import tensorflow.compat.v1 as tf\nimage = tf.placeholder(tf.float32)\n"
    assert at("tensorflow/2.15.1", text) == [("tf1-eager", "train.py", 2)]
    assert at("tensorflow/1.15.5", text) == []
    assert at("tensorflow/2.15.1", replace_once(text, "\nimage", "\ntf.disable_v2_behavior()\nimage")) == []
    whole = "import tensorflow as tf\nimage = tf.compat.v1.placeholder(tf.float32)\n"
    assert at("tensorflow/2.15.1", whole) == [("tf1-eager", "train.py", 2)]


def test_run_tf_function_is_needed_before_2_2_and_wrong_for_keras_3() -> None:
    flagged = replace_once(KERAS, 'loss="mse"', 'loss="mse", experimental_run_tf_function=False')
    wrong = [("run-tf-function", "train.py", 7)]
    assert at("tensorflow/2.1.0", KERAS) == wrong
    assert at("tensorflow/2.1.0", flagged) == []
    assert at("tensorflow/2.15.1", KERAS) == at("tensorflow/2.15.1", flagged) == []
    assert at("tensorflow/2.21.0", flagged) == wrong
    assert at("tensorflow/2.21.0-tf-keras", flagged) == []
    assert at("tensorflow/2.21.0", flagged, more="export TF_USE_LEGACY_KERAS=1\n") == []
    itself = f"import os\nos.environ['TF_USE_LEGACY_KERAS'] = '1'\n{flagged}"
    assert at("tensorflow/2.21.0", itself) == []


def test_more_parallel_reads_than_threads_are_found() -> None:
    text = "import os\nimport tensorflow as tf\nthreads = os.environ['NUM_INTER_THREADS']\n"
    text += "data = tf.data.TFRecordDataset(files, num_parallel_reads=4)\n"
    few = at("tensorflow/2.15.1", text, more="export NUM_INTER_THREADS=2\n")
    assert few == [("parallel-reads", "job.sh", 8)]
    assert at("tensorflow/2.15.1", text, more="export NUM_INTER_THREADS=6\n") == []
    assert at("tensorflow/2.15.1", text) == []
    auto = replace_once(text, "num_parallel_reads=4", "num_parallel_reads=tf.data.AUTOTUNE")
    assert at("tensorflow/2.15.1", auto, more="export NUM_INTER_THREADS=1\n") == []
