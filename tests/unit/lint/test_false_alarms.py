"""What the linter must not report: each text is like one of Horovod's, TensorFlow's or a site's own examples."""

from __future__ import annotations

import pytest

from parts.profiles import profile
from parts.texts import replace_once
from provision.lint.arch_choice import on_other_nodes
from provision.lint.job_rules import lint_job
from provision.lint.job_script import read_script
from provision.lint.training import read_training


def rules(program: str, job: str = "", site: str | None = None) -> set[str]:
    """The rules that find something in a program, and in the job that starts it at a site."""
    training = read_training(program, "train.py") if program else None
    found = training.findings if training else ()
    if site:
        script = read_script(job, "job.sh")
        found += lint_job(script, training, profile(site), None, script.main())
    return {finding.rule for finding in found}


@pytest.mark.parametrize(
    "line",
    [
        'parser.add_argument("--data-dir", default="/tmp/data")',
        'flags.DEFINE_string("cache", "/tmp/x", "where images are kept")',
        'data = data.cache("/tmp/images")',
        'model = tf.saved_model.load("/tmp/x")',
        'rows = open("/tmp/x.csv").read()',
        'if path == "/tmp/x": pass',
        'found = os.path.exists("/tmp/x")',
        'tf.__file__ = "/tmp/tf/__init__.py"',
        'filename = "/tmp/input_batch.json"',
    ],
)
def test_a_path_below_tmp_that_is_read_is_no_output(line: str) -> None:
    program = f"import os\nimport tensorflow as tf\n{line}\n"
    assert "node-local-output" not in rules(program)


@pytest.mark.parametrize(
    "line",
    [
        'parser.add_argument("--output-dir", default="/tmp/data")',
        'open("/tmp/x.csv", "w").write(rows)',
        'model.save("/tmp/cache.keras")',
        'callback = tf.keras.callbacks.BackupAndRestore(backup_dir="/tmp/x")',
        'working_dir = "/tmp/mine"',
    ],
)
def test_output_below_tmp_is_found(line: str) -> None:
    assert "node-local-output" in rules(f"import tensorflow as tf\n{line}\n")
    assert rules(f"import unittest\nimport tensorflow as tf\n{line}\n") == set()


def test_softmax_in_one_class_and_a_loss_in_another_one_are_two_models() -> None:
    text = """\
class One:
    def build(self):
        return Dense(10, activation="softmax")
class Two:
    def loss(self, y, x):
        return crossentropy(y, x, from_logits=True)
"""
    assert rules(text) == set()
    assert rules(replace_once(text, "class Two:\n", "")) == {"softmax-twice"}


SYNTHETIC = """\
import tensorflow as tf
import horovod.tensorflow.keras as hvd
hvd.init()
images = tf.random.uniform([32, 224, 224, 3])
labels = tf.random.uniform([32, 1], maxval=999, dtype=tf.int64)
data = tf.data.Dataset.from_tensor_slices((images, labels)).repeat().batch(32)
model = tf.keras.Sequential()
model.compile(hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.01 * hvd.size())), "mse")
model.fit(data, callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0)])
"""


def test_random_numbers_of_a_benchmark_need_not_be_split() -> None:
    assert rules(SYNTHETIC) == set()
    assert rules(replace_once(SYNTHETIC, "tf.random.uniform([32, 224", "read_images([32, 224")) == {"input-not-split"}


NOTEBOOK = """\
import tensorflow as tf
model = tf.keras.Sequential()
model.fit(images, labels, batch_size=32)
data = data.batch(32)
model.fit(data)
strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    second = tf.keras.Sequential()
second.fit(big)
"""


def test_what_is_trained_before_the_strategy_is_made_is_not_its_input() -> None:
    assert rules(NOTEBOOK) == set()
    assert rules(f"{NOTEBOOK}second.fit(images, labels, batch_size=32)\n") == {"arrays-in-strategy", "batch-of-all"}


OTHER_NODES = """\
#!/bin/bash
#SBATCH -C gpu
#SBATCH -q debug
#SBATCH -A m1
#SBATCH -L SCRATCH
#SBATCH -t 00:30:00
#SBATCH --nodes=1 --ntasks-per-node=8 --gpus-per-task=1 --cpus-per-task=10
set -e
module load tensorflow/intel-1.15.0-py37
module list
srun -c 10 ./program
"""


def test_nodes_that_the_profile_does_not_describe_have_no_known_size() -> None:
    assert rules("", OTHER_NODES, "nersc-cori") == {"unknown-constraint"}
    assert {"gpus", "threads"} <= rules("", OTHER_NODES.replace("-C gpu", "-C haswell"), "nersc-cori")


def test_a_partition_of_large_memory_that_the_profile_does_not_list_is_only_unknown() -> None:
    text = """\
#!/bin/bash
#SBATCH --account=nn1234k --partition=hugemem --time=01:00:00 --ntasks=1 --cpus-per-task=2 --mem-per-cpu=1000G
set -e
module reset
module load R/4.2.1-foss-2022a
module list
srun --cpus-per-task=2 Rscript x.R
"""
    assert rules("", text, "sigma2-saga") == {"unknown-queue"}
    assert on_other_nodes(read_script(text, "job.sh"), profile("sigma2-saga"))
    assert "memory" in rules("", text.replace("hugemem", "normal"), "sigma2-saga")


def test_a_command_beside_another_one_in_one_shell_ends_with_it() -> None:
    text = "#!/bin/bash\n#SBATCH --nodes=1\nset -e\nsrun bash -c 'nvidia-smi --loop=1 & exec ./program'\n"
    assert "no-wait" not in rules("", text, "nersc-perlmutter")
    assert "no-wait" in rules("", text.replace("exec ./program'", "./program &'"), "nersc-perlmutter")
