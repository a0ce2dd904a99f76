"""A program that trains alone in a job whose ranks, workers or GPUs are to train together, with the modules beside it."""

from __future__ import annotations

import functools
import re
import shlex
import shutil
from pathlib import Path

import pytest

from parts.cli import call, envelope
from parts.examples import PROGRAMS
from parts.jobs import job, render_user_job
from parts.profiles import SITES, profile
from parts.texts import replace_once
from provision.lint.job_script import read_script
from provision.lint.rules import lint_job, read_training
from provision.profile.strategy import StrategyName

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
WEIGHTS = {"strategy-unused": "error", "kind-unseen": "warning", "one-process": "advice"}


@functools.cache
def script_of(kind: StrategyName, arch: str) -> str:
    """The script of a job of this kind, on two nodes if it can have several, of `train.py` beside it."""
    nodes = 2 if kind in ("horovod", "multiworker") else None
    asked = f"provision job {kind} --site sigma2-saga --account tests --arch {arch} --script train.py"
    return render_user_job(
        job("sigma2-saga", arch, kind, nodes=nodes, command=f"{asked} --nodes {nodes} --no-lint" if nodes else asked)
    )


def linted(tmp_path: Path, capsys: Captured, kind: StrategyName, arch: str, files: dict[str, str]) -> dict[str, str]:
    """The rules about kinds that `job lint` finds in the script of a job that starts these files, each with its fix."""
    for name, text in {"job.sh": script_of(kind, arch), **files}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    code = call("job", "lint", str(tmp_path / "job.sh"), "--site", "sigma2-saga", "--json")
    answer = envelope(capsys)
    findings = (answer["error"] if code else answer["result"])["findings"]
    found = {one["rule"]: one["fix"] for one in findings if one["rule"] in WEIGHTS}
    assert code == 2 or not any(WEIGHTS[rule] == "error" for rule in found)
    return found


ALONE = {
    "keras": KERAS,
    "print": "print(1)\n",
    "docstring": '"""Trains with Horovod: import horovod.tensorflow as hvd, MirroredStrategy."""\n' + KERAS,
    "comment": "# import horovod.tensorflow.keras as hvd; MultiWorkerMirroredStrategy\n" + KERAS,
    "programs": "import os\nimport subprocess\nos.system('nvidia-smi')\nsubprocess.run(['hostname'])\n" + KERAS,
    "words": "import argparse\nimport sys\nprint(sys.argv, 'no horovod')\n" + KERAS.replace(")))", ")), workers=4)"),
    "loop": LOOP,
    "graph": OLD,
    "torch": TORCH,
    "bare-import": "import horovod\n" + KERAS,
}


@pytest.mark.parametrize(
    ("kind", "name"), [*(("horovod", name) for name in ALONE), ("multiworker", "keras"), ("mirrored", "comment")]
)
def test_a_program_that_trains_alone_is_an_error_of_its_kind_of_job(
    kind: StrategyName, name: str, tmp_path: Path, capsys: Captured
) -> None:
    ((rule, fix),) = linted(tmp_path, capsys, kind, ARCHS[kind], {"train.py": ALONE[name]}).items()
    assert rule == "strategy-unused"
    assert fix.startswith("`provision job single --") and "--account tests" in fix and "--nodes" not in fix


@pytest.mark.parametrize("site", [None, "sigma2-saga", "nersc-perlmutter", "PROFILE"])
@pytest.mark.parametrize("program", [KERAS, "data = tfds.load('mnist')\n" + HOROVOD])
def test_what_the_linter_advises_works_at_the_site_that_is_named(
    site: str | None, program: str, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the script was written for another site, or if the site is named by the path of its profile."""
    if site == "PROFILE":
        shutil.copy(SITES / "alcf-theta.toml", site := str(tmp_path / "alcf-theta.toml"))
    script, at = tmp_path / "job.sh", ("--site", site) if site else ()
    script.write_text(script_of("horovod", "normal"))
    (tmp_path / "train.py").write_text(program)
    monkeypatch.chdir(tmp_path)
    call("job", "lint", str(script), *at)
    said = "".join(capsys.readouterr())
    advised = [shlex.split(words) for words in re.findall(r"`provision ([a-z][^`]*)`", said)]
    assert advised or program != KERAS
    for words in advised:
        named = words[words.index("--site") + 1] if "--site" in words else None
        assert named == (site or ("sigma2-saga" if words[1] == "single" else None))
        assert call(*words) == (2 if words[1] == "lint" else 0) or words[0] == "data", words


TRAINS = {"horovod": HOROVOD, "multiworker": WORKERS, "mirrored": MIRRORED, "single": KERAS}


@pytest.mark.parametrize("right", TRAINS)
@pytest.mark.parametrize("kind", TRAINS)
def test_a_program_of_another_kind_is_an_error_that_names_its_kind(
    kind: StrategyName, right: str, tmp_path: Path, capsys: Captured
) -> None:
    found = linted(tmp_path, capsys, kind, "accel", {"train.py": TRAINS[right]})
    if kind == right:
        assert found == {}
    elif kind == "single":
        assert set(found) <= {"one-process"}, "one process of a program for several is only advice"
    else:
        (fix,) = found.values()
        assert fix.startswith(f"`provision job {right} --")


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


@pytest.mark.parametrize("name", SPLIT)
def test_horovod_in_a_module_beside_the_program_is_seen(name: str, tmp_path: Path, capsys: Captured) -> None:
    files = SPLIT[name]
    assert linted(tmp_path, capsys, "horovod", "normal", files) == {}
    if not name.startswith("from"):
        files = {file: text.replace(HOROVOD, KERAS) for file, text in files.items()}
        files = {file: text if "hvd" not in text else "def fit():\n    return 1\n" for file, text in files.items()}
        assert set(linted(tmp_path, capsys, "horovod", "normal", files)) == {"strategy-unused"}


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
        "import broken",
    ],
)
def test_what_cannot_be_read_is_at_most_a_warning(line: str, tmp_path: Path, capsys: Captured) -> None:
    files = {"train.py": f"{line}\n{KERAS}", "broken.py": "print 'x'\n"}
    ((rule, fix),) = linted(tmp_path, capsys, "horovod", "accel", files).items()
    assert (rule, fix.split()[2]) == ("kind-unseen", "mpi" if "mpi4py" in line else "single")


def test_a_program_in_parts_that_never_wraps_its_optimizer_is_found(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "train.py").write_text("import run\nrun.main()\n")
    (tmp_path / "run.py").write_text(HOROVOD.replace("hvd.DistributedOptimizer", ""))
    assert call("job", "lint", str(tmp_path / "train.py"), "--json") == 2
    assert {one["rule"] for one in envelope(capsys)["error"]["findings"]} == {"not-distributed"}
    (tmp_path / "run.py").write_text(HOROVOD)
    assert call("job", "lint", str(tmp_path / "train.py")) == 0


@pytest.mark.parametrize(
    ("start", "file"),
    [
        ("srun python -m pkg.train", "pkg/train.py"),
        ("mpirun -np 4 python -u -m pkg", "pkg/__main__.py"),
        ("cd src && srun python3 -m pkg.train --epochs 3", "src/pkg/train.py"),
    ],
)
def test_a_module_that_stands_beside_the_script_is_followed(
    start: str, file: str, tmp_path: Path, capsys: Captured
) -> None:
    def rules(program: str) -> set[str]:
        (tmp_path / file).write_text(program)
        code = call("job", "lint", str(tmp_path / "job.sh"), "--json")
        answer = envelope(capsys)
        return {one["rule"] for one in (answer["error"] if code else answer["result"])["findings"]}

    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / "job.sh").write_text(replace_once(HAND, "srun python train.py", f"python -m pip list\n{start}"))
    (tmp_path / file).with_name("model.py").write_text(HOROVOD)
    assert "ranks-alone" in rules(KERAS)
    assert not {"ranks-alone", "starts-nothing"} & rules("from pkg.model import model\n" + KERAS)
    assert not {"ranks-alone", "starts-nothing"} & rules("from .model import model\n" + KERAS)


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


def by_hand(start: str, program: str, *changes: str) -> set[str]:
    """The rules that find something in a user's job with this start of a program, and a part of it changed."""
    job = replace_once(HAND, "srun python train.py", start)
    script = read_script(replace_once(job, *changes) if changes else job, "job.sh")
    return {finding.rule for finding in lint_job(script, read_training(program, "train.py"), None, None)}


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
    seeded = KERAS + "np.random.seed(3)\n# not with horovod, mpi or ranks\n"
    for program in (KERAS, seeded, LOOP, OLD):
        assert "ranks-alone" in by_hand(start, program)


@pytest.mark.parametrize(
    ("directives", "start", "several"),
    [
        ("--nodes=2", "srun python train.py", True),
        ("--nodes=2", "srun --mpi=pmi2 python train.py -n 1", True),
        ("-N 2", "mpirun python train.py", True),
        ("-N2", "mpiexec -bind-to none python train.py", True),
        ("--nodes=2-4", "srun singularity exec tf.sif python train.py", True),
        ("--nodes=3", "srun -N 2 python train.py", True),
        ("--nodes=2", "srun -n $SLURM_NNODES python train.py", True),
        ("--nodes=2", "mpirun -np ${SLURM_JOB_NUM_NODES} python train.py", True),
        ("--nodes=2", "mpirun --npernode 1 python train.py", True),
        ("--gpus=4 --ntasks-per-gpu=1", "srun python train.py", True),
        ("--nodes=1", "NP=4\nmpirun -np $NP python train.py", True),
        ("--nodes=1", "srun python train.py", False),
        ("--nodes=2", "srun -n1 python train.py", False),
        ("--nodes=2", "srun -N1 python train.py", False),
        ("--nodes=2", "srun --nodes=1 --ntasks-per-node=1 python train.py", False),
        ("--nodes=2", "srun -w node1 python train.py", False),
        ("--nodes=2", "mpirun --host node1 python train.py", False),
        ("--nodes=2 --ntasks=1", "srun python train.py", False),
        ("--nodes=1", "srun python train.py --ntasks 4 -N 2", False),
        ("--nodes=2", "srun hostname\npython train.py", False),
    ],
)
def test_tasks_that_nobody_counted_train_alone_on_each_node(directives: str, start: str, several: bool) -> None:
    for program, alone in ((KERAS, True), (HOROVOD, False), (WORKERS, False)):
        assert ("ranks-alone" in by_hand(start, program, "--ntasks=4", directives)) is (several and alone)
    assert ("mirrored-tasks" in by_hand(start, MIRRORED, "--ntasks=4", directives)) is several


def test_an_option_of_the_program_is_not_one_of_the_launcher() -> None:
    for start in ("srun python train.py -n 8", "mpirun python train.py --np 8 --gpus 2"):
        assert not {"ranks", "ranks-alone"} & by_hand(start, HOROVOD)


@pytest.mark.parametrize("nodes", ["nodes=2:ppn=4", "select=2:ncpus=32:ngpus=4", "select=1:ngpus=4+1:ngpus=4"])
def test_every_way_in_which_pbs_counts_nodes_is_read(nodes: str) -> None:
    directives = f"#PBS -l {nodes}\n#PBS -l walltime=00:10:00"
    change = ("#SBATCH --ntasks=4\n#SBATCH --time=00:30:00", directives)
    for start, wrong in (("aprun -n 8 -N 4", False), ("mpiexec -n 8 --ppn 4", False), ("aprun -n 9 -N 4", True)):
        assert ("ranks" in by_hand(f"{start} python train.py", HOROVOD, *change)) is wrong
    assert "ranks-alone" in by_hand("mpirun python train.py", KERAS, *change)


def test_a_module_of_horovod_makes_the_job_one_for_horovod() -> None:
    module = ("module list", "module load Horovod/0.28.1\nmodule list")
    program = KERAS + "print('worker')\n"
    assert "ranks-alone" not in by_hand("srun python train.py", program)
    assert "ranks-alone" in by_hand("srun python train.py", program, *module)
    assert "ranks-alone" not in by_hand("srun python train.py", HOROVOD, *module)


@pytest.mark.parametrize(
    "line",
    [
        "import os; print(os.environ['SLURM_PROCID'])",
        "from mpi4py import MPI",
        "import torch.distributed as dist",
        "import jax; jax.distributed.initialize()",
        "import deepspeed",
        "import optuna",
        "import socket; name = socket.gethostname()",
    ],
)
def test_ranks_with_work_of_their_own_are_not_reported(line: str) -> None:
    assert "ranks-alone" not in by_hand("srun python train.py", f"{line}\n{KERAS}")


@pytest.mark.parametrize(
    "start",
    [
        *("srun --ntasks=1 python train.py", "srun -n 1 python train.py", "mpirun -np 1 python train.py"),
        *("python train.py", "srun bash -c 'python train.py $SLURM_PROCID'", "srun --output=out-%t python train.py"),
        "srun bash -c 'PART=$SLURM_LOCALID python train.py'",
    ],
)
def test_one_rank_or_ranks_with_words_of_their_own_are_not_reported(start: str) -> None:
    assert "ranks-alone" not in by_hand(start, KERAS)
    assert "ranks-alone" not in by_hand("srun python train.py", KERAS, "--ntasks=4", "--array=1-4")
    assert "ranks-alone" not in by_hand("srun python train.py", "print(1)\n")


@pytest.mark.parametrize("launcher", ["srun", "mpirun", "mpiexec", "mpiexec.hydra"])
def test_more_ranks_than_tasks_are_found_for_every_launcher(launcher: str) -> None:
    for number, more in ((8, True), (2, False), (4, False)):
        assert ("ranks" in by_hand(f"{launcher} -n {number} python train.py", HOROVOD)) is more


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
    assert "ranks" not in by_hand(f"mpirun {words} python train.py", HOROVOD)


def test_a_profile_with_the_plug_in_needs_it_in_the_program() -> None:
    theta = profile("alcf-theta")
    head = "#!/bin/bash\n# Written by `provision job cray-ml-plugin --site alcf-theta`. Submit it with `qsub FILE`.\n"
    script = read_script(f"{head}script=train.py\naprun -n 2 python $script\n", "job.sh")
    for program, expected in ((KERAS, True), ("import ml_comm as mc\n" + KERAS, False)):
        found = lint_job(script, read_training(program, "train.py"), theta, None)
        assert ("strategy-unused" in {finding.rule for finding in found}) is expected
