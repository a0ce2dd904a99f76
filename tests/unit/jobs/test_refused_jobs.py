"""Jobs that cannot work are refused, each with its fields and the fix: `tests/golden/words/job.txt` has every message.

Scripts: `test_containers.py` has the refusals of overlays and images.
"""

from __future__ import annotations

import dataclasses
import os
import shlex
from pathlib import Path
from typing import Any

import pytest

from golden_files import Words
from parts.cli import call
from parts.jobs import job, refusal
from parts.loops import name_row
from parts.profiles import PROFILES, profile
from provision.errors import EXIT_USAGE
from provision.jobs.user_job import with_launcher
from provision.machine.submission import submit as submission
from provision.profile.stack import Framework
from provision.profile.strategy import StrategyName

Refused = tuple[str, str, StrategyName, dict[str, Any]]
SAGA, POLARIS, THETA = ("sigma2-saga", "accel"), ("alcf-polaris", "gpu"), ("alcf-theta", "knl")
CORI, GREENE = ("nersc-cori", "knl"), ("nyu-greene", "gpu")
MPIRUN = with_launcher(profile("nyu-greene"), profile("nyu-greene").arch("gpu"), "mpirun")
NO_MODULES = dataclasses.replace(profile("sigma2-saga").arch("normal"), provided=())
OLD = Framework(name="tensorflow", package="tensorflow", version="1.15.5")
WRONG = {"account": None, "nodes": 2, "time": "15-0", "image": "a b.sif", "watch_gpus": True, "use_gpu": False}
REFUSED: tuple[Refused, ...] = (
    # Kinds and nodes
    (*SAGA, "mirrored", {"ranks_per_node": 2}),
    (*SAGA, "ddp", {}),  # its modules are TensorFlow
    (*GREENE, "ddp", {}),  # its overlay is
    (*SAGA, "ddp", {"runtime": "container"}),  # its image is
    (*SAGA, "mirrored", {"runtime": "container", "image": "docker://pytorch/pytorch:2.7.1-cuda12.6-cudnn9-runtime"}),
    (*SAGA, "mirrored", {"nodes": 2}),
    (*SAGA, "mirrored", {"gpus": 5}),
    (*SAGA, "mirrored", WRONG),  # one error has all faults
    (*SAGA, "single", {"nodes": 2}),
    (*SAGA, "single", {"gpus": 2}),
    (*SAGA, "single", {"gpus": 1, "use_gpu": False}),
    ("sigma2-saga", "normal", "single", {"gpus": 1}),
    ("sigma2-saga", "a100", "single", {"use_gpu": False}),
    (*SAGA, "horovod", {"nodes": 8}),
    (*SAGA, "horovod", {"ranks_per_node": 8}),
    (*SAGA, "horovod", {"cpus": 7}),
    (*GREENE, "multiworker", {"arch": MPIRUN}),
    (*POLARIS, "multiworker", {}),
    (*THETA, "multiworker", {}),
    (*THETA, "horovod", {"nodes": 9}),
    (*THETA, "horovod", {"queue": "default", "nodes": 8}),
    (*THETA, "horovod", {"inter": 3, "intra": 128}),
    (*CORI, "multiworker", {}),  # its TensorFlow is too old
    (*CORI, "multiworker", {"runtime": "venv", "module": "mine/1", "framework": OLD}),
    *((name, profile(name).archs[0].name, "cray-ml-plugin", {}) for name in PROFILES if name != "alcf-theta"),
    (*THETA, "cray-ml-plugin", {"runtime": "venv"}),
    # Time, queue and account
    (*SAGA, "single", {"time": "15-0"}),
    (*SAGA, "single", {"time": "soon"}),
    (*SAGA, "single", {"time": "soon", "module": "$(x)"}),
    (*CORI, "single", {"time": "31"}),
    (*SAGA, "single", {"queue": "devel", "time": "03:00:00"}),
    (*SAGA, "single", {"queue": "normal"}),
    (*SAGA, "single", {"queue": "a b"}),
    (*CORI, "single", {"queue": "a\nb"}),
    (*POLARIS, "single", {"queue": "debug-scalin"}),
    ("nyu-torch", "h200", "single", {"queue": "gpu"}),
    (*SAGA, "horovod", {"qos": "turbo"}),
    (*SAGA, "horovod", {"qos": "devel", "time": "03:00:00"}),
    (*SAGA, "single", {"account": None}),
    (*SAGA, "single", {"account": "a\n#SBATCH --x"}),
    (*SAGA, "single", {"account": "$(id)"}),
    # Options of the scheduler
    (*SAGA, "horovod", {"name": "a b"}),
    (*SAGA, "horovod", {"name": "x" * 65}),
    (*SAGA, "horovod", {"memory": "8 GB"}),
    (*SAGA, "horovod", {"memory": "200G"}),
    (*POLARIS, "horovod", {"memory": "8G"}),
    (*THETA, "horovod", {"memory": "2G"}),
    (*POLARIS, "horovod", {"qos": "devel"}),
    (*THETA, "horovod", {"qos": "devel"}),
    (*SAGA, "horovod", {"constraint": "a b"}),
    (*THETA, "horovod", {"queue": "debug-flat-quad", "constraint": "mcdram=cache:numa=quad"}),
    (*SAGA, "horovod", {"mail": "me"}),
    (*SAGA, "horovod", {"mail": "me@x\n#SBATCH -x"}),
    (*SAGA, "horovod", {"array": "8-1"}),
    (*POLARIS, "horovod", {"array": "1,2"}),
    (*THETA, "horovod", {"array": "1-8"}),
    (*THETA, "horovod", {"requeue": True}),
    *(
        (*SAGA, "horovod", {"extra": (extra,)})
        for extra in ("nice", "#PBS -r y", "--a\n#SBATCH --b", "--nodes=4", "-N4")
    ),
    (*POLARIS, "horovod", {"extra": ("-l walltime=1",)}),
    (*THETA, "horovod", {"extra": ("-n 4",)}),
    # Runtimes, images and modules
    ("nyu-torch", "h200", "single", {"runtime": "venv"}),
    ("sigma2-saga", "normal", "single", {"runtime": "modules", "arch": NO_MODULES}),
    (*SAGA, "single", {"image": "x.sif"}),
    (*GREENE, "single", {"image": "docker://tensorflow/tensorflow:latest"}),
    (*GREENE, "single", {"image": "docker://tensorflow/tensorflow"}),
    (*GREENE, "single", {"image": "a b.sif"}),
    (*SAGA, "single", {"module": "x/1\nreboot"}),
    (*SAGA, "single", {"module": "$(reboot)"}),
    (*SAGA, "single", {"venv": "/x;id"}),
    # Files and data
    (*SAGA, "single", {"script": "a\nb.py"}),
    (*SAGA, "single", {"resume": "../x"}),
    (*SAGA, "single", {"data": "/x/$(id)"}),
    (*SAGA, "single", {"stage_in": "/x"}),
    (*CORI, "single", {"stage_in": "/x", "data": "/y"}),
    (*CORI, "single", {"burst_buffer_gb": 9}),
    (*CORI, "single", {"watch_gpus": True}),
)


def name_job(row: Refused) -> str:
    """The site, arch and kind of a job, and what it asks for; an arch by its name."""
    *place, changes = row
    return name_row((*place, {key: value.name if key == "arch" else value for key, value in changes.items()}))


@pytest.mark.parametrize("row", REFUSED, ids=map(name_job, REFUSED))
def test_a_job_that_cannot_work_is_refused_with_a_hint(row: Refused, words: Words) -> None:
    name, arch, kind, changes = row
    words("job", "\n".join(refusal(job(name, arch, kind, **changes)).to_lines()))


ON_SAGA, ON_TORCH = ("--site", "sigma2-saga", "--arch", "accel"), ("--site", "nyu-torch", "--arch", "h200")
ON_GREENE = ("--site", "nyu-greene", "--arch", "gpu")
GPU = ("--site", "nersc-perlmutter", "--arch", "gpu")
CPU = ("--site", "nersc-perlmutter", "--arch", "cpu")
TRAIN = ("single", *ON_SAGA, "--script", "train.py")
CONTAINER = (*ON_GREENE, "--runtime", "container")
HOROVOD_IMAGE = ("--image", "docker://horovod/horovod:0.28.1")
FILES = {
    "train.py": "",
    "pandas.txt": "pandas",
    "numpy.txt": "pandas\nnumpy<1.20",
    "horovod.txt": "horovod",
    "other.txt": "-r other.txt",
}
NEEDS_HOROVOD = (
    ("horovod", *CONTAINER),
    ("horovod", *CONTAINER, *HOROVOD_IMAGE),
    ("horovod", *CONTAINER, "--sweep", "1,2", "--out", "x"),
)
COMMANDS: tuple[tuple[str, ...], ...] = (
    (),
    ("horovod", "--site", "sigma2-saga", "--arch", "acel"),
    ("horovod", "--site", "generic-slurm"),
    ("single", *ON_SAGA, "--script", "nosuch.py"),
    ("single", *ON_SAGA, "--gpus", "0"),
    ("single", *ON_SAGA, "--arguments", "it's"),
    ("mirrored", "7", "--site", "sigma2-saga"),
    # A machine without a scheduler
    ("single", "--site", "local"),
    ("horovod", "--site", "local"),
    ("horovod", "--site", "local", "--stack", "tensorflow-2.20.0"),
    ("single", "--site", "local", "--module", "tensorflow/2.20.0"),
    # Options that another one makes useless
    ("single", "--site", "sigma2-saga", "--arch", "normal", "--runtime", "venv", "--module", "a/1", "b/1"),
    ("single", *ON_SAGA, "--stack", "tensorflow-2.15.1-gpu"),
    # Stacks that cannot run the job
    ("ddp", *ON_TORCH, "--stack", "pytorch-2.7.1", "--nodes", "2"),
    ("ddp", "--site", "sigma2-olivia", "--arch", "accel", "--stack", "pytorch-2.7.1", "--nodes", "2"),
    ("ddp", "--site", "alcf-theta", "--arch", "knl", "--stack", "pytorch-2.7.1"),
    ("ddp", *ON_SAGA, "--stack", "pytorch-2.14.1", "--runtime", "venv"),
    ("ddp", *GPU, "--stack", "tensorflow-2.15.1-gpu"),
    ("ddp", *ON_GREENE, "--stack", "pytorch-2.7.1", "--runtime", "container"),
    *((kind, *place, "--stack", "pytorch-2.7.1") for kind in ("mpi", "horovod") for place in (CPU, GPU)),
    ("horovod", *CPU, "--stack", "tensorflow-2.21.0-multiworker"),
    *(("mirrored", *ON_TORCH, *option) for option in (("--stack", "tensorflow-2.15.1"), ("--module", "a/1"))),
    ("mirrored", *ON_TORCH, "--venv", "/a"),
    (*TRAIN, "--no-wait"),
    (*TRAIN, "--inter", "-1"),
    (*TRAIN, "--launcher", "horovodrun"),
    (*TRAIN, "--submit", "--array", "8-1"),
    (*TRAIN, "--submit", "--extra", "#COBALT -n 1"),
    # Sweeps
    ("horovod", *GPU, "--sweep", "1,6", "--submit"),
    ("horovod", *CPU, "--sweep", "3", "--submit"),
    ("mirrored", *GPU, "--sweep", "1,8", "--out", "x"),
    ("mirrored", *CPU, "--sweep", "1,2", "--out", "x"),
    ("horovod", *GPU, "--sweep", "1,x", "--submit"),
    ("horovod", *GPU, "--sweep", "2,2", "--submit"),
    ("horovod", *GPU, "--sweep", "1"),
    ("horovod", *GPU, "--sweep", "1", "--out", "x", "--submit"),
    ("horovod", *GPU, "--out", "x"),
    ("horovod", *GPU, "--sweep", "1", "--gpus", "2", "--out", "x"),
    ("horovod", *GPU, "--sweep", "1", "--array", "1-2", "--out", "x"),
    # Overlays and images
    *NEEDS_HOROVOD,
    ("overlay", *ON_GREENE, "--nodes", "2"),
    ("overlay", *ON_GREENE, "--image", "x"),
    ("image", *ON_GREENE, "--gb", "2"),
    ("image", *ON_GREENE, "--watch-gpus"),
    ("single", *ON_GREENE, "--gb", "2"),
    ("overlay", *ON_GREENE, "--gb", "0"),
    ("overlay", *ON_GREENE, "--stack", "tensorflow-2.20.0"),
    ("overlay", *ON_GREENE, "--stack", "tensorflow-1.15.5"),
    ("overlay", "7", *ON_GREENE),
    ("overlay", *ON_GREENE, "--overlay", "/x"),
    ("overlay", *ON_GREENE, "--requirements", "pandas.txt", "--overlay", "a b"),
    ("overlay", *ON_GREENE, "--requirements", "pandas.txt", "--overlay", "/scratch/$USER/tensorflow-example/tensorflow.ext3"),
    *(("overlay", *ON_GREENE, "--requirements", f"{name}.txt") for name in ("numpy", "horovod", "other")),
    ("single", *ON_SAGA, "--overlay", "x"),
    ("single", *ON_SAGA, "--no-overlay"),
    ("single", *CONTAINER, "--overlay", "a b;c"),
    ("single", "--site", "sigma2-olivia", "--arch", "accel", "--runtime", "container", "--no-overlay"),
    # `job lint`
    ("lint",),
    ("lint", "nosuch.sh"),
    ("lint", "."),
    ("lint", "train.py", "--arch", "normal"),
    ("single", "--lint", "train.py"),
)  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_wrong_command_is_refused_and_nothing_is_written_or_submitted(
    command: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: Words,
) -> None:
    monkeypatch.setattr(submission, "_submit", lambda *args: pytest.fail("a job was submitted"))
    work = tmp_path / "work"
    work.mkdir()
    for name, text in FILES.items():
        (work / name).write_text(text)
    monkeypatch.chdir(work)
    account = ("--account", "tests") if "--site" in command and "local" not in command else ()
    assert call("job", *command, *account) == EXIT_USAGE
    out, err = capsys.readouterr()
    assert out == ""
    # Without a scheduler, the rest is about this machine.
    words(
        "job",
        "\n".join(line for line in err.splitlines() if line.startswith(("error: ", "hint: ")))
        if "local" in command
        else err,
    )
    assert {path.name for path in work.iterdir()} == set(FILES)
    assert not Path(os.environ["PROVISION_ROOT"]).exists()
    if command in NEEDS_HOROVOD:
        fetch = next(line for line in err.splitlines() if line.endswith("` writes the script that fetches the image"))
        assert call(*shlex.split(fetch.partition("`provision ")[2].partition("`")[0])) == 0
