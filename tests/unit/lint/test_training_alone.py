"""A program that trains alone in a job whose ranks, workers or GPUs are to train together, with the modules beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from parts.cli import call, envelope
from parts.examples import PROGRAMS
from parts.profiles import profile
from parts.texts import replace_once
from provision.lint.job_rules import lint_job
from provision.lint.job_script import read_script
from provision.lint.training import read_training

Captured = pytest.CaptureFixture[str]
SAGA = ("--site", "sigma2-saga", "--account", "tests")
KERAS = """\
import numpy as np
import keras
model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(np.ones((8, 1)), np.ones((8, 1)))
"""
HOROVOD = """\
import tensorflow as tf
import horovod.tensorflow.keras as hvd
hvd.init()
data = tf.data.TFRecordDataset(files).shard(hvd.size(), hvd.rank())
model = tf.keras.Sequential()
model.compile(hvd.DistributedOptimizer(tf.keras.optimizers.Adam()), "mse")
model.fit(data, callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0)])
"""
LOOP = """\
import tensorflow as tf
with tf.GradientTape() as tape:
    loss = model(x)
optimizer.apply_gradients(zip(tape.gradient(loss, w), w))
"""
OLD = "import tensorflow as tf\nstep = tf.train.GradientDescentOptimizer(0.1).minimize(loss)\n"
TORCH = "import torch\noptimizer = torch.optim.SGD(model.parameters())\nloss.backward()\n"
MIRRORED, WORKERS = PROGRAMS["mirrored/train.py"], PROGRAMS["multiworker/train.py"]
KINDS = ("horovod", "multiworker", "mirrored")
ARCHS = {"horovod": "normal", "multiworker": "accel", "mirrored": "accel"}
WEIGHTS = {"horovod-unused": "error", "strategy-unused": "error", "kind-unseen": "warning", "one-process": "advice"}


def written(tmp_path: Path, capsys: Captured, kind: str, arch: str, files: dict[str, str]) -> dict[str, str]:
    """The rules about kinds that `job KIND` finds in these files, each with its fix; `job lint` of the script finds the same."""
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    words = ("job", kind, *SAGA, "--arch", arch, "--script", str(tmp_path / "train.py"))
    several = ("--nodes", "2") if kind in ("horovod", "multiworker") else ()
    code = call(*words, *several)
    shown = capsys.readouterr()
    assert call(*words, *several, "--no-lint") == 0
    (tmp_path / "job.sh").write_text(capsys.readouterr().out)
    linted = call("job", "lint", str(tmp_path / "job.sh"), "--site", "sigma2-saga", "--json")
    answer = envelope(capsys)
    findings = (answer["error"] if linted else answer["result"])["findings"]
    found = {one["rule"]: one["fix"] for one in findings if one["rule"] in WEIGHTS}
    assert all(rule in shown.out + shown.err for rule in found)
    if any(WEIGHTS[rule] == "error" for rule in found):
        assert (code, linted, shown.out) == (2, 2, "")
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "text",
    [
        KERAS,
        "print(1)\n",
        '"""Trains with Horovod: import horovod.tensorflow as hvd, MirroredStrategy."""\n' + KERAS,
        "# import horovod.tensorflow.keras as hvd; MultiWorkerMirroredStrategy\n" + KERAS,
        "import os\nimport subprocess\nos.system('nvidia-smi')\nsubprocess.run(['hostname'])\n" + KERAS,
        "import argparse\nimport sys\nprint(sys.argv, 'without horovod')\n" + KERAS.replace(")))", ")), workers=4)"),
        LOOP,
        OLD,
        TORCH,
        "import horovod\n" + KERAS,
    ],
    ids=["keras", "print", "docstring", "comment", "programs", "words", "loop", "graph", "torch", "bare-import"],
)
def test_a_program_that_trains_alone_is_an_error_of_its_kind_of_job(
    kind: str, text: str, tmp_path: Path, capsys: Captured
) -> None:
    found = written(tmp_path, capsys, kind, ARCHS[kind], {"train.py": text})
    (rule,) = found
    assert rule == ("horovod-unused" if kind == "horovod" else "strategy-unused")
    assert found[rule].startswith("`provision job single --")
    assert "--nodes" not in found[rule]
    assert "--account tests" in found[rule]


@pytest.mark.parametrize(
    ("kind", "text", "right"),
    [
        ("horovod", MIRRORED, "mirrored"),
        ("horovod", WORKERS, "multiworker"),
        ("multiworker", MIRRORED, "mirrored"),
        ("multiworker", HOROVOD, "horovod"),
        ("mirrored", HOROVOD, "horovod"),
        ("mirrored", WORKERS, "multiworker"),
    ],
)
def test_a_program_of_another_kind_is_an_error_that_names_its_kind(
    kind: str, text: str, right: str, tmp_path: Path, capsys: Captured
) -> None:
    found = written(tmp_path, capsys, kind, "accel", {"train.py": text})
    (fix,) = found.values()
    assert fix.startswith(f"`provision job {right} --")


@pytest.mark.parametrize("kind", [*KINDS, "single"])
def test_a_program_of_its_kind_is_not_reported(kind: str, tmp_path: Path, capsys: Captured) -> None:
    text = {"horovod": HOROVOD, "multiworker": WORKERS, "mirrored": MIRRORED, "single": KERAS}[kind]
    assert written(tmp_path, capsys, kind, "accel", {"train.py": text}) == {}


@pytest.mark.parametrize("text", [HOROVOD, MIRRORED, WORKERS])
def test_one_process_of_a_program_for_several_is_only_advice(text: str, tmp_path: Path, capsys: Captured) -> None:
    assert set(written(tmp_path, capsys, "single", "accel", {"train.py": text})) <= {"one-process"}


SPLIT = {
    "function": {
        "train.py": "from dist import fit\nfit()\n",
        "dist.py": f"def fit():\n    {HOROVOD.replace(chr(10), chr(10) + '    ')}\n",
    },
    "package": {"train.py": "import parts.run\n", "parts/__init__.py": "", "parts/run.py": HOROVOD},
    "namespace": {"train.py": "from parts import run\n", "parts/run.py": HOROVOD},
    "relative": {
        "train.py": "from parts import work\n",
        "parts/__init__.py": "",
        "parts/work.py": "from . import other\n",
        "parts/other.py": "from .deep.run import go\n",
        "parts/deep/__init__.py": "",
        "parts/deep/run.py": "from ..last import *\n",
        "parts/last.py": HOROVOD,
    },
    "by-name": {"train.py": "import importlib\nimportlib.import_module('run')\n", "run.py": HOROVOD},
    "from-horovod": {
        "train.py": HOROVOD.replace("import horovod.tensorflow.keras", "from horovod.tensorflow import keras")
    },
    "from-top": {"train.py": HOROVOD.replace("import horovod.tensorflow.keras", "from horovod import keras")},
    "circle": {"train.py": "import run\n", "run.py": "import train\nimport run\n" + HOROVOD},
}


@pytest.mark.parametrize("files", SPLIT.values(), ids=SPLIT)
def test_horovod_in_a_module_beside_the_program_is_seen(
    files: dict[str, str], tmp_path: Path, capsys: Captured
) -> None:
    assert written(tmp_path, capsys, "horovod", "normal", files) == {}


@pytest.mark.parametrize("name", [name for name in SPLIT if not name.startswith("from")])
def test_modules_beside_the_program_without_horovod_are_an_error(name: str, tmp_path: Path, capsys: Captured) -> None:
    files = {file: text.replace(HOROVOD, KERAS) for file, text in SPLIT[name].items()}
    files = {file: text if "hvd" not in text else "def fit():\n    return 1\n" for file, text in files.items()}
    assert set(written(tmp_path, capsys, "horovod", "normal", files)) == {"horovod-unused"}


@pytest.mark.parametrize(
    "line",
    [
        "import importlib; importlib.import_module('horovod' + '.tensorflow')",
        "__import__(name)",
        "import runpy; runpy.run_path('run.py')",
        "exec(open('run.py').read())",
        "import subprocess, sys; subprocess.run([sys.executable, 'run.py'])",
        "import os; os.system('python run.py')",
        "import os; os.execvp('python', words)",
        "import institute_training",
        "from lib.trainer import fit",
        "import mpi4py.MPI",
        "import torch.distributed",
        "import os; part = int(os.environ['SLURM_PROCID'])",
        "import tensorflow as tf; strategy = getattr(tf.distribute, name)()",
        "import tensorflow as tf; strategy = tf.distribute.experimental.ParameterServerStrategy(r)",
    ],
)
def test_what_cannot_be_read_is_at_most_a_warning(line: str, tmp_path: Path, capsys: Captured) -> None:
    for kind in ("horovod", "mirrored"):
        found = written(tmp_path, capsys, kind, "accel", {"train.py": f"{line}\n{KERAS}"})
        assert set(found) == {"kind-unseen"}, kind


def test_a_module_with_a_fault_of_syntax_was_not_read(tmp_path: Path, capsys: Captured) -> None:
    files = {"train.py": "import run\n" + KERAS, "run.py": "print 'x'\n"}
    assert set(written(tmp_path, capsys, "horovod", "normal", files)) == {"kind-unseen"}


def test_a_program_in_parts_that_never_wraps_its_optimizer_is_found(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "train.py").write_text("import run\nrun.main()\n")
    (tmp_path / "run.py").write_text(HOROVOD.replace("hvd.DistributedOptimizer", ""))
    assert call("job", "lint", str(tmp_path / "train.py"), "--json") == 2
    assert {one["rule"] for one in envelope(capsys)["error"]["findings"]} == {"not-distributed"}
    (tmp_path / "run.py").write_text(HOROVOD)
    assert call("job", "lint", str(tmp_path / "train.py")) == 0


HAND = """\
#!/bin/bash
#SBATCH --ntasks=4
#SBATCH --time=00:30:00
set -e
module reset
module load tensorflow/2.15.1
module list
srun python train.py
"""


def by_hand(job: str, program: str) -> set[str]:
    script = read_script(job, "job.sh")
    return {finding.rule for finding in lint_job(script, read_training(program, "train.py"), None, None, script.main())}


@pytest.mark.parametrize(
    "start",
    [
        "srun python train.py",
        "srun -n 4 python train.py",
        "srun -n4 python train.py",
        "srun --ntasks-per-node=2 python train.py",
        "srun -n $SLURM_NTASKS python train.py",
        "mpirun python train.py",
        "mpirun -np 4 python train.py",
        "mpiexec -n ${SLURM_NTASKS} python train.py --epochs 3",
    ],
)
def test_ranks_that_a_user_starts_and_that_train_alone_are_found(start: str) -> None:
    job = replace_once(HAND, "srun python train.py", start)
    seeded = KERAS + "np.random.seed(3)\n# not with horovod, mpi or ranks\n"
    for program in (KERAS, seeded, LOOP, OLD):
        assert "ranks-alone" in by_hand(job, program)


def test_a_module_of_horovod_makes_the_job_one_for_horovod() -> None:
    job = replace_once(HAND, "module list", "module load Horovod/0.28.1\nmodule list")
    program = KERAS + "print('worker')\n"
    assert "ranks-alone" not in by_hand(HAND, program)
    assert "ranks-alone" in by_hand(job, program)
    assert "ranks-alone" not in by_hand(job, HOROVOD)


@pytest.mark.parametrize(
    ("start", "program"),
    [
        ("srun python train.py", "import os\nprint(os.environ['SLURM_PROCID'])\n" + KERAS),
        ("srun python train.py", "from mpi4py import MPI\n" + KERAS),
        ("srun python train.py", "import torch.distributed as dist\n" + KERAS),
        ("srun python train.py", "import jax\njax.distributed.initialize()\n" + KERAS),
        ("srun python train.py", "import deepspeed\n" + KERAS),
        ("srun python train.py", "import optuna\n" + KERAS),
        ("srun python train.py", "import socket\nname = socket.gethostname()\n" + KERAS),
        ("srun python train.py", "print(1)\n"),
        ("srun --ntasks=1 python train.py", KERAS),
        ("srun -n 1 python train.py", KERAS),
        ("mpirun -np 1 python train.py", KERAS),
        ("python train.py", KERAS),
        ("srun bash -c 'python train.py $SLURM_PROCID'", KERAS),
        ("srun bash -c 'PART=$SLURM_LOCALID python train.py'", KERAS),
        ("srun --output=out-%t python train.py", KERAS),
    ],
)
def test_ranks_with_work_of_their_own_are_not_reported(start: str, program: str) -> None:
    assert "ranks-alone" not in by_hand(replace_once(HAND, "srun python train.py", start), program)


def test_an_array_of_single_tasks_is_not_reported() -> None:
    assert "ranks-alone" not in by_hand(replace_once(HAND, "--ntasks=4", "--array=1-4"), KERAS)


@pytest.mark.parametrize("launcher", ["srun", "mpirun", "mpiexec", "mpiexec.hydra"])
def test_more_ranks_than_tasks_are_found_for_every_launcher(launcher: str) -> None:
    for words, rule in (("-n 8", "ranks"), ("-n 2", "fewer-ranks")):
        assert rule in by_hand(replace_once(HAND, "srun python", f"{launcher} {words} python"), HOROVOD)
    assert not {"ranks", "fewer-ranks"} & by_hand(replace_once(HAND, "srun python", f"{launcher} -n 4 python"), HOROVOD)


@pytest.mark.parametrize(
    "words",
    [
        "-np 8 --host a:4,b:4",
        "-np 8 -H a,b",
        "-np 8 --hostfile hosts",
        "-np 8 -machinefile hosts",
        "-n 8 -f hosts",
        "--oversubscribe -np 8",
        "-np 1 python coordinator.py : -np 3",
        "-np $SLURM_NTASKS",
    ],
)
def test_ranks_on_named_hosts_are_not_reported(words: str) -> None:
    assert not {"ranks", "fewer-ranks"} & by_hand(replace_once(HAND, "srun python", f"mpirun {words} python"), HOROVOD)


def test_a_profile_with_the_plug_in_needs_it_in_the_program() -> None:
    theta = profile("alcf-theta")
    head = "#!/bin/bash\n# Written by `provision job cray-ml-plugin --site alcf-theta`. Submit it with `qsub FILE`.\n"
    script = read_script(f"{head}script=train.py\naprun -n 2 python $script\n", "job.sh")
    for program, expected in ((KERAS, True), ("import ml_comm as mc\n" + KERAS, False)):
        found = lint_job(script, read_training(program, "train.py"), theta, None, script.main())
        assert ("strategy-unused" in {finding.rule for finding in found}) is expected
