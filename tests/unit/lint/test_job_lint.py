"""`provision job lint`: what we write has no fault; each fault of the pages and of their readers is found at its line."""

from __future__ import annotations

import dataclasses
import functools
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from golden_files import Words
from parts.cli import call
from parts.loops import for_each
from parts.paths import GOLDEN
from parts.profiles import profile
from parts.texts import replace_once
from provision.errors import EXIT_USAGE
from provision.lint.job_script import read_script
from provision.lint.rules import RULES, count_rules, lint_job, lint_program, read_training
from provision.lint.training_script import TrainingProgram

JOBS = GOLDEN / "jobs"
SCRIPTS = sorted(JOBS.rglob("*.sh"))
BUILDS = sorted(JOBS.with_name("builds").rglob("*.sh"))

GOOD = """\
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=6
#SBATCH --gpus-per-task=1
#SBATCH --mem-per-cpu=8G
#SBATCH --time=00:30:00
#SBATCH --partition=accel
#SBATCH --account=nn1234k

set -euo pipefail
module reset
module load TensorFlow/2.11.0-foss-2022a-CUDA-11.7.0
module list
export OMP_NUM_THREADS=6
unset http_proxy https_proxy
srun --cpus-per-task=6 python -u train.py
"""

HOROVOD = """\
import os
import tensorflow as tf
import horovod.tensorflow.keras as hvd
hvd.init()
gpus = tf.config.list_physical_devices("GPU")
tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")
tf.config.threading.set_intra_op_parallelism_threads(int(os.environ["NUM_INTRA_THREADS"]))
opt = hvd.DistributedOptimizer(tf.keras.optimizers.Adam(0.001 * hvd.size()))
callbacks = [hvd.callbacks.BroadcastGlobalVariablesCallback(0)]
if hvd.rank() == 0:
    callbacks.append(tf.keras.callbacks.ModelCheckpoint("x"))
model.fit(data, callbacks=callbacks)
"""
MIRRORED = "import tensorflow as tf\nstrategy = tf.distribute.MirroredStrategy()\n"
MULTIWORKER = """\
import tensorflow as tf
resolver = tf.distribute.cluster_resolver.SlurmClusterResolver()
strategy = tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver=resolver)
"""


def found(
    text: str, *, training: str | None = None, site: str | None = "sigma2-saga", arch: str = "accel"
) -> list[Any]:
    """The rules and lines of the findings in a job script."""
    at = profile(site) if site else None
    read: TrainingProgram | None = read_training(training, "train.py") if training is not None else None
    findings = lint_job(read_script(text, "job.sh"), read, at, at.arch(arch) if at else None)
    for finding in findings:
        assert finding.message
        assert finding.fix
    return [(finding.rule, finding.line) for finding in findings]


def trained(text: str) -> list[tuple[str, int]]:
    """The rules and lines of the findings in a training script."""
    return [(finding.rule, finding.line) for finding in lint_program(read_training(text, "train.py"), None)]


@for_each("path", SCRIPTS, ids=lambda path: str(path.relative_to(JOBS)))
def test_the_job_scripts_that_we_write_have_no_fault(path: Path) -> None:
    assert len(SCRIPTS) >= 60
    name, arch = path.relative_to(JOBS).parts[:2]
    text = path.read_text(encoding="utf-8")
    assert found(text, site=name, arch=arch) == []
    # The modules of a Cray XC must not be purged; only its profile states that.
    without_profile = {"modules-on-top"} if profile(name).modules.reset == "none" else set()
    # Saga's other module tree is a module without a version; only its profile states that.
    without_profile |= {"module-version"} if "module load Zen2Env" in text else set()
    assert {rule for rule, _ in found(text, site=None)} == without_profile
    start = read_script(text, "job.sh").main()
    program = start.path if start else ""
    trains = path.stem not in ("image", "overlay", "own-overlay")
    assert program.endswith("mnist.py" if path.stem == "cray-ml-plugin" else "train.py" if trains else "")
    assert trains or not program


@for_each("path", BUILDS, ids=lambda path: str(path.relative_to(JOBS.with_name("builds"))))
def test_the_build_scripts_that_we_write_have_no_fault(path: Path) -> None:
    assert len(BUILDS) >= 10
    name, arch = path.relative_to(JOBS.with_name("builds")).parts[:2]
    assert found(path.read_text(encoding="utf-8"), site=name, arch=arch) == []


def test_gpus_on_an_arch_without_gpus_are_found() -> None:
    assert ("gpus", 5) in found(GOOD, arch="normal")


# Against the training script


ON_ONE_NODE, BY_NODE = ("--nodes=2", "--nodes=1"), ("--gpus-per-task=1", "--gpus-per-node=4")
BY_MPIRUN = (("srun --cpus-per-task=6", "mpirun -np 8"), BY_NODE)
ONE_TASK_A_NODE = (("--ntasks-per-node=4", "--ntasks-per-node=1"), ("--gpus-per-task=1", "--gpus-per-task=4"))
ONE_TASK = (("--ntasks-per-node=4", "--ntasks=1"), ("--gpus-per-task=1", "--gpus=4"))
BY_PROCID = "import os\nrank = int(os.environ['SLURM_PROCID'])\n"
# This is the fix that the finding proposes.
ANY_GPU = HOROVOD.replace("gpus[hvd.local_rank()]", "gpus[hvd.local_rank() if len(gpus) > 1 else 0]")


@pytest.mark.parametrize(
    ("changes", "training", "finding"),
    [
        ((), MIRRORED, ("mirrored-tasks", 3)),
        (ONE_TASK_A_NODE, MIRRORED, ("mirrored-tasks", 3)),  # of two nodes
        ((*ONE_TASK_A_NODE, ON_ONE_NODE), MIRRORED, None),
        ((*ONE_TASK, ON_ONE_NODE), HOROVOD, ("horovod-tasks", 3)),
        ((), MULTIWORKER, None),
        (BY_MPIRUN, MULTIWORKER, ("multiworker-launcher", 17)),
        (BY_MPIRUN[:1], HOROVOD, ("mpirun-gpus", 5)),
        ((("unset http_proxy https_proxy\n", ""),), MULTIWORKER, ("proxies", 16)),
        (BY_MPIRUN, BY_PROCID, ("slurm-number", 2)),
        ((*BY_MPIRUN, ("OMP_NUM_THREADS=6", 'RANK="$SLURM_PROCID"')), None, ("slurm-number", 15)),
        ((), BY_PROCID, None),
        ((), HOROVOD, ("gpu-by-local-rank", 6)),
        ((BY_NODE,), HOROVOD, None),
        ((), ANY_GPU, None),
    ],
)
def test_a_job_that_does_not_fit_its_program_is_found(
    changes: tuple[tuple[str, str], ...], training: str | None, finding: tuple[str, int] | None
) -> None:
    text = functools.reduce(lambda text, change: replace_once(text, *change), changes, GOOD)
    assert found(text, training=training, site=None) == ([finding] if finding else [])


def test_thread_variables_that_the_training_does_not_read_are_found() -> None:
    text = replace_once(GOOD, "OMP_NUM_THREADS=6", "NUM_INTRA_THREADS=6")
    assert ("threads-unread", 15) in found(text, training=MULTIWORKER)
    assert "threads-unread" not in dict(found(text, training=HOROVOD))


SOFTMAX = "a = Dense(10, activation='softmax')\nb = Loss(from_logits={})\n"
NAMES = (
    "from horovod.tensorflow import init, DistributedOptimizer, broadcast_variables\n"
    "init()\nDistributedOptimizer(1)\nbroadcast_variables([], 0)\n"
)
TAPE = HOROVOD.replace("hvd.DistributedOptimizer(tf.keras.optimizers.Adam(0.001 * hvd.size()))", "1")


@pytest.mark.parametrize(
    ("text", "findings"),
    [
        ("import os\nif os.environ.get('SLURM_PROCID') == 0:\n    pass\n", [("text-is-no-number", 2)]),
        ("import os\nif int(os.environ['SLURM_PROCID']) == 0:\n    pass\n", []),
        (SOFTMAX.format(True), [("softmax-twice", 2)]),
        (SOFTMAX.format(False), []),
        (f"{TAPE}tape = hvd.DistributedGradientTape(tape)\n", []),
        (NAMES, []),
        ("import os\nprint 'rank'\n", [("no-python", 2)]),  # of Python 2
        ("\0", [("no-python", 1)]),
    ],
)
def test_a_fault_of_a_training_script_is_found(text: str, findings: list[tuple[str, int]]) -> None:
    assert trained(text) == findings


@pytest.mark.parametrize(
    ("start", "rule"),
    [
        ("exec --overlay $overlay:rw --nv /x.sif", "overlay-rw"),
        ("exec --overlay $overlay:ro /x.sif", "container-gpu"),
        ("exec --nv docker://tensorflow/tensorflow:latest", "image-gpu"),
        ("exec --nv --overlay $overlay:ro /x.sif", None),
    ],
)
def test_a_fault_of_a_container_is_found(start: str, rule: str | None) -> None:
    head = "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --ntasks=1\n#SBATCH --gres=gpu:2\nset -e\nmodule purge\n"
    text = f"{head}overlay=/scratch/ada/overlay.ext3\nsrun singularity {start} python train.py\n"
    assert found(text, site=None) == ([(rule, 8)] if rule else [])


# Other schedulers


def written(site: str, arch: str, kind: str) -> str:
    """A job script that we write for a site."""
    return (JOBS / site / arch / f"{kind}.sh").read_text(encoding="utf-8")


def test_directives_of_another_scheduler_are_found() -> None:
    assert ("scheduler", 2) in found(GOOD, site="alcf-polaris", arch="gpu")


@pytest.mark.parametrize(
    ("site", "arch", "old", "new", "rule"),
    [
        ("alcf-polaris", "gpu", 'cd "$submit_folder"\n', "", "folder"),
        ("alcf-theta", "knl", ":filesystems=home,theta-fs0", "", "filesystems"),
        ("alcf-theta", "knl", "#COBALT -n 2\n", "#COBALT -n 9\n", "nodes"),
        ("alcf-theta", "knl", "aprun -n 2 ", "aprun -n 4 ", "ranks"),
        ("alcf-theta", "knl", "#!/usr/bin/env bash\n", "#!/usr/bin/env bash\n\n", "late-directive"),
        ("alcf-theta", "knl", "#!/usr/bin/env bash\n", "", "late-directive"),
        ("alcf-theta", "knl", "OMP_NUM_THREADS=62\n", "OMP_NUM_THREADS=300\n", "threads"),
        ("alcf-theta", "knl", "NUM_INTRA_THREADS=62\n", "NUM_INTRA_THREADS=64\n", "intra-omp"),
    ],
)
def test_a_fault_under_pbs_and_cobalt_is_found(site: str, arch: str, old: str, new: str, rule: str) -> None:
    text = replace_once(written(site, arch, "horovod"), old, new)
    assert rule in dict(found(text, site=site, arch=arch))


@pytest.mark.parametrize(
    ("queue", "mode", "fault"),
    [
        ("debug-flat-quad", "mcdram=cache:numa=quad", True),
        ("debug-flat-quad", "mcdram=flat:numa=snc4", True),
        ("debug-cache-quad", "mcdram=flat", True),
        ("debug-flat-quad", "numa=quad:mcdram=flat", False),
        ("default", "mcdram=flat:numa=quad", False),
    ],
)
def test_a_memory_mode_that_the_queue_does_not_have_is_found(queue: str, mode: str, fault: bool) -> None:
    text = replace_once(written("alcf-theta", "knl", "horovod"), "-q debug-cache-quad", f"-q {queue}")
    text = replace_once(text, "mcdram=cache:numa=quad", mode)
    assert (("constraint", 8) in found(text, site="alcf-theta", arch="knl")) == fault


def test_what_cobalt_does_not_read_counts_as_missing() -> None:
    text = replace_once(written("alcf-theta", "knl", "horovod"), "#COBALT -A tests\n", "# Mine:\n#COBALT -A tests\n")
    faults = found(text, site="alcf-theta", arch="knl")
    assert ("late-directive", 8) in faults
    assert ("late-directive", 9) in faults, "the line with the file systems comes later still"
    assert {"account", "filesystems"} <= set(dict(faults))


def test_a_comment_between_directives_is_no_fault_under_slurm_and_pbs() -> None:
    assert found(replace_once(GOOD, "#SBATCH --nodes=2\n", "# The nodes:\n\n#SBATCH --nodes=2\n"), site=None) == []
    text = replace_once(written("alcf-polaris", "gpu", "horovod"), "#PBS -j oe\n", "# Errors:\n\n  #PBS -j oe\n")
    assert found(text, site="alcf-polaris", arch="gpu") == []


def test_a_directive_that_the_profile_forbids_is_found() -> None:
    text = written("nyu-torch", "h200", "horovod")
    assert "partition" not in dict(found(text, site="nyu-torch", arch="h200"))
    first, rest = text.split("\n", 1)
    assert ("partition", 2) in found(f"{first}\n#SBATCH --partition=h200\n{rest}", site="nyu-torch", arch="h200")


@pytest.mark.parametrize("spelling", ["--mem=64G", "--mem-per-cpu=2G"])
@pytest.mark.parametrize("table", ["required", "forbidden"])
def test_memory_is_found_in_any_spelling(spelling: str, table: str) -> None:
    at = profile("sigma2-saga")
    at = dataclasses.replace(at, scheduler=dataclasses.replace(at.scheduler, **{"required": (), table: ("memory",)}))
    text = replace_once(GOOD, "--mem-per-cpu=8G", spelling)
    rules = [finding.rule for finding in lint_job(read_script(text, "job.sh"), None, at, at.arch("accel"))]
    assert ("memory" in rules) == (table == "forbidden")


def test_tensorflow_on_a_service_node_is_found() -> None:
    text = f"{written('alcf-theta', 'knl', 'single')}python -c 'import tensorflow'\n"
    assert "on-service-node" in dict(found(text, site="alcf-theta", arch="knl"))


def test_many_nodes_without_the_burst_buffer_are_found() -> None:
    text = written("nersc-cori", "knl", "horovod").replace("--nodes=2 ", "--nodes=32 ")
    assert ("burst-buffer", 4) in found(text, site="nersc-cori", arch="knl")
    assert "burst-buffer" not in dict(found(text.replace("=32 ", "=31 "), site="nersc-cori", arch="knl"))


# The verb


HOROVOD_MODULE = "module load Horovod/0.28.1-foss-2022a-CUDA-11.7.0-TensorFlow-2.11.0\n"


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """The good script on disk, with a training script beside it."""
    path = tmp_path / "job.sh"
    path.write_text(replace_once(GOOD, "module list\n", f"{HOROVOD_MODULE}module list\n"))
    (tmp_path / "train.py").write_text(replace_once(HOROVOD, "gpus[hvd.local_rank()]", "gpus[0]"))
    return path


def without_counts(text: str) -> str:
    """The text without the number of rules, which grows."""
    return re.sub(r"with \d+ rules", "with N rules", text)


def test_a_script_without_fault_is_reported_with_what_was_read(
    job: Path, capsys: pytest.CaptureFixture[str], words: Words
) -> None:
    assert call("job", "lint", str(job), "--site", "sigma2-saga") == 0
    out, err = capsys.readouterr()
    count = count_rules(job=True, site=True, program=True)
    assert (count, err) == (len(RULES), "") and f" {count} " in out
    words("lint", without_counts(out))


def test_only_errors_make_the_exit_code_2(job: Path, capsys: pytest.CaptureFixture[str], words: Words) -> None:
    job.write_text(replace_once(job.read_text(), "module list\n", ""))
    assert call("job", "lint", str(job), "--site", "sigma2-saga") == 0
    words("lint", without_counts(capsys.readouterr().out))
    assert call("job", "lint", str(job), "--site", "sigma2-saga", "--json") == 0
    result = json.loads(capsys.readouterr().out)["result"]
    assert [finding["weight"] for finding in result["findings"]] == ["advice"]


def test_findings_are_reported_with_line_evidence_and_fix(
    job: Path, capsys: pytest.CaptureFixture[str], words: Words
) -> None:
    job.write_text(replace_once(job.read_text(), "module list\n", ""))
    train = job.parent / "train.py"
    train.write_text(replace_once(train.read_text(), "hvd.rank() == 0", "hvd.rank == 0"))
    assert call("job", "lint", str(job), "--site", "sigma2-saga") == EXIT_USAGE
    out, err = capsys.readouterr()
    assert out == ""
    words("lint", without_counts(err))
    assert call("job", "lint", str(job), "--site", "sigma2-saga", "--json") == EXIT_USAGE
    error = json.loads(capsys.readouterr().out)["error"]
    finding = error["findings"][0]
    assert "`module list`" in finding.pop("fix") and finding.pop("message")
    evidence = "module load TensorFlow/2.11.0-foss-2022a-CUDA-11.7.0"
    wanted = {"weight": "advice", "rule": "no-module-list", "file": str(job), "line": 13, "evidence": evidence}
    assert finding == wanted
    assert error["checked"]["read"] == [str(train)]


def test_a_training_script_is_checked_alone(job: Path, capsys: pytest.CaptureFixture[str], words: Words) -> None:
    train = job.parent / "train.py"
    assert call("job", "lint", str(train), "--site", "sigma2-saga") == 0
    out = capsys.readouterr().out
    assert f" {count_rules(job=False, site=True, program=True)} " in out
    words("lint", without_counts(out))
    assert call("job", "lint", str(train), "--script", "x.py") == EXIT_USAGE
    words("lint", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("text", "finds"),
    [
        (
            replace_once(GOOD, "set -euo pipefail\n", "set -euo pipefail\n#SBATCH --qos=devel\n"),
            "stdin:12: error: late-directive",
        ),
        (replace_once(HOROVOD, "hvd.rank() == 0", "hvd.rank == 0"), "stdin:10: error: never-called"),
    ],
)
def test_a_script_is_read_from_stdin(
    text: str, finds: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert call("job", "lint", "-") == EXIT_USAGE
    assert finds in capsys.readouterr().err


@pytest.mark.parametrize(
    "start",
    [
        "srun python $SLURM_SUBMIT_DIR/train.py",
        'srun python "${PWD}/train.py"',
        "srun python $(pwd)/train.py",
        'srun singularity exec --nv x.sif bash -c "source /ext3/env.sh && python train.py"',
        "srun singularity exec --nv x.sif /bin/bash -c '\nsource /ext3/env.sh &&\npython train.py\n'",
        "code=$SLURM_SUBMIT_DIR\nsrun python $code/train.py",
        "cd $SLURM_SUBMIT_DIR\nsrun python train.py",
        "srun ./train.py",
    ],
)
def test_the_training_script_is_found(start: str, job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job.write_text(replace_once(job.read_text(), "srun --cpus-per-task=6 python -u train.py", start))
    assert call("job", "lint", str(job), "--json") == 0
    assert json.loads(capsys.readouterr().out)["result"]["read"] == [str(job.parent / "train.py")]


@pytest.mark.parametrize(
    ("start", "path"),
    [
        ("srun python $CODE/train.py", "$CODE/train.py"),
        ("srun python other.py", "other.py"),
        ("srun python /nosuch/train.py", "/nosuch/train.py"),
    ],
)
def test_a_training_script_that_is_not_read_is_named(
    start: str, path: str, job: Path, capsys: pytest.CaptureFixture[str], words: Words
) -> None:
    job.write_text(replace_once(job.read_text(), "srun --cpus-per-task=6 python -u train.py", start))
    assert call("job", "lint", str(job)) == 0
    out = capsys.readouterr().out
    (line,) = [line for line in out.splitlines() if f"`{path}`" in line]
    words("lint", line)
    assert "add `--script PROGRAM`" in out


def test_a_job_script_in_python_is_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And one that starts no Python is none; that is noted."""
    path = tmp_path / "job.py"
    path.write_text("#!/usr/bin/env python3\n#SBATCH --nodes=1\nimport os\nif os.environ['X'] == 0:\n    pass\n")
    assert call("job", "lint", str(path)) == EXIT_USAGE
    assert "text-is-no-number" in capsys.readouterr().err
    alone = path.with_name("train")  # a program without an ending
    alone.write_text(path.read_text().replace("#SBATCH --nodes=1\n", ""))
    assert call("job", "lint", str(alone)) == EXIT_USAGE
    assert f"{alone}:3: error: text-is-no-number" in capsys.readouterr().err
    path.write_text("#!/bin/bash\n#SBATCH --nodes=1\nset -e\nsrun hostname\n")
    assert call("job", "lint", str(path)) == 0
    assert "no training script was read" in capsys.readouterr().out


def test_another_training_script_can_be_given(job: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.py"
    other.write_text("import horovod.tensorflow as hvd\nhvd.init()\nmodel.fit(data)\n")
    assert call("job", "lint", str(job), "--script", str(other)) == EXIT_USAGE
    assert "not-distributed" in capsys.readouterr().err
