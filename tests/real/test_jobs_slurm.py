"""Users' jobs under a real Slurm with the nodes of real sites, emulated: what we write is what sbatch and srun take.

`module` is a stand-in that says what it was asked for: the sites' own TensorFlow modules cannot be had. The training
script is a stand-in too; it writes down what each rank was given.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from parts import site_nodes
from parts.cli import call, envelope
from parts.jobs import EXPORTED_MODULE, render_user_job
from parts.profiles import profile
from parts.slurm import NodeGroup, Partition, SlurmCluster
from provision.errors import EXIT_JOB_LEFT
from provision.jobs.user_job import UserJob
from provision.profile.strategy import StrategyName

pytestmark = pytest.mark.slurm

TRAIN = """\
import json, os, sys
keep = ("OMP", "NUM_", "CUDA", "SLURM", "OMPI", "XLA", "PROVISION", "http", "KERAS")
seen = {name: value for name, value in os.environ.items() if name.startswith(keep)}
seen["words"], seen["cpus"] = sys.argv[1:], len(os.sched_getaffinity(0))
name = "rank-%s.json" % os.environ.get("SLURM_PROCID", "0")
with open(os.path.join(os.environ["PROVISION_OUTPUT"], name), "w") as file:
    json.dump(seen, file)
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[SlurmCluster]:
    """Two nodes each of Saga's normal and accel and of both kinds of Cori's, with their CPUs, memory, GPUs and features."""
    with site_nodes.cluster("hsw", "knl", "c", "gpu") as one:
        yield one


def ran(
    cluster: SlurmCluster, folder: Path, name: str, arch: str, kind: StrategyName, **more: Any
) -> list[dict[str, Any]]:
    """Submit the job of a site, see it end well, and return what its ranks wrote down, in their order."""
    site = profile(name)
    (folder / "train.py").write_text(TRAIN)
    asked = UserJob(
        kind=kind,
        site=site,
        arch=site.arch(arch),
        command="a test",
        module="tensorflow/2.15.1",
        modulepath="/site/modules",
        account="tests",
        **more,
    )
    work = folder / "work"
    environ = {
        **EXPORTED_MODULE,
        "USERWORK": str(work),
        "SCRATCH": str(work),
        "EBROOTCUDA": "/site/cuda",
        "http_proxy": "http://p",
    }
    (folder / "job.sh").write_text(render_user_job(asked))
    number = cluster.run("sbatch", "--parsable", "job.sh", cwd=folder, environ=environ).stdout.strip()
    state = cluster.wait(number, timeout_s=120)
    said = (folder / f"{kind}-{arch}-{number}.out").read_text()
    assert state == "COMPLETED", said
    assert "module list" in said
    out = work / "runs" / number
    assert (out / "checkpoints").is_dir()
    found = sorted(out.glob("rank-*.json"), key=lambda path: int(path.stem.partition("-")[2]))
    return [json.loads(path.read_text()) for path in found]


def test_horovod_on_saga_has_a_task_a_gpu_and_six_cpus_on_two_nodes(cluster: SlurmCluster, tmp_path: Path) -> None:
    ranks = ran(cluster, tmp_path, "sigma2-saga", "accel", "horovod", arguments=("--say", "it's $x"))
    assert [one["SLURM_PROCID"] for one in ranks] == [str(number) for number in range(8)]
    assert {one["SLURM_NODEID"] for one in ranks} == {"0", "1"}
    assert [one["SLURM_LOCALID"] for one in ranks] == ["0", "1", "2", "3"] * 2
    for one in ranks:
        assert len(one["CUDA_VISIBLE_DEVICES"].split(",")) == 1
        assert (one["SLURM_CPUS_PER_TASK"], one["OMP_NUM_THREADS"]) == ("6", "6")
        assert (one["OMPI_MCA_pml"], one["OMPI_MCA_btl"]) == ("ob1", "^openib")
        assert one["XLA_FLAGS"] == "--xla_gpu_cuda_data_dir=/site/cuda"
        assert one["words"] == ["--say", "it's $x"]
        assert "http_proxy" in one


def test_multiworker_on_saga_has_the_variables_of_a_step_and_no_proxy(cluster: SlurmCluster, tmp_path: Path) -> None:
    ranks = ran(cluster, tmp_path, "sigma2-saga", "accel", "multiworker")
    assert len(ranks) == 8
    for one in ranks:
        assert one["SLURM_STEP_NUM_TASKS"] == "8"
        assert one["SLURM_STEP_NODELIST"]
        assert "http_proxy" not in one
        assert one["PROVISION_COMMUNICATION"] == "AUTO"


def test_mirrored_on_saga_is_one_process_with_all_gpus_it_asked_for(cluster: SlurmCluster, tmp_path: Path) -> None:
    (one,) = ran(cluster, tmp_path, "sigma2-saga", "accel", "mirrored", gpus=2)
    assert len(one["CUDA_VISIBLE_DEVICES"].split(",")) == 2
    assert one["PROVISION_REPLICAS"] == "2"
    assert one["SLURM_CPUS_PER_TASK"] == "12"
    assert "KERAS_HOME" not in one


def test_a_single_job_has_one_gpu_or_by_its_own_wish_none(cluster: SlurmCluster, tmp_path: Path) -> None:
    (one,) = ran(cluster, tmp_path, "sigma2-saga", "accel", "single")
    assert len(one["CUDA_VISIBLE_DEVICES"].split(",")) == 1
    (one,) = ran(cluster, tmp_path, "sigma2-saga", "accel", "single", use_gpu=False)
    assert one["CUDA_VISIBLE_DEVICES"] == ""


@pytest.mark.parametrize(("arch", "ranks", "cpus"), [("haswell", 4, "32"), ("knl", 2, "272")])
def test_horovod_on_cori_goes_to_the_nodes_of_the_arch(
    cluster: SlurmCluster, tmp_path: Path, arch: str, ranks: int, cpus: str
) -> None:
    found = ran(cluster, tmp_path, "nersc-cori", arch, "horovod")
    assert len(found) == ranks
    for one in found:
        assert one["SLURM_JOB_NODELIST"].startswith(arch[:3] if arch == "knl" else "hsw")
        assert one["SLURM_CPUS_PER_TASK"] == cpus
        assert "OMP_NUM_THREADS" not in one, "it is the module's, which this stand-in does not set"
        assert one["NUM_INTRA_THREADS"]


# Arrays, jobs that start again, and jobs that the verb submits and follows

AGAIN = """\
import json, os, sys, time
checkpoints = os.path.join(os.environ["PROVISION_OUTPUT"], "checkpoints")
if len(sys.argv) == 1:
    open(os.path.join(checkpoints, "epoch-0001"), "w").close()
    time.sleep(60)
with open(os.path.join(os.environ["PROVISION_OUTPUT"], "words.json"), "w") as file:
    json.dump(sys.argv[1:], file)
"""


@pytest.fixture
def at_saga(cluster: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The words of a job at Saga, in a folder from which the cluster takes jobs."""
    monkeypatch.chdir(tmp_path)
    variables = {
        **EXPORTED_MODULE,
        "USERWORK": str(tmp_path),
        "EBROOTCUDA": "/site/cuda",
        "SLURM_CONF": str(cluster.conf),
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "train.py").write_text(TRAIN)
    return ["job", "single", "--site", "sigma2-saga", "--arch", "accel", "--account", "tests", "--script", "train.py"]


def test_the_tasks_of_an_array_are_submitted_and_followed(
    at_saga: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = call(*at_saga, "--submit", "--array", "1,3", "--arguments", "$PROVISION_TASK", "--json")
    out, err = capsys.readouterr()
    assert code == 0, out + err
    result = json.loads(out)["result"]
    assert result["state"] == "COMPLETED"
    for task in ("1", "3"):
        folder = tmp_path / "runs" / f"{result['job']}_{task}"
        assert json.loads((folder / "rank-0.json").read_text())["words"] == [task]
        assert (tmp_path / f"single-accel-{result['job']}_{task}.out").is_file()
    (tmp_path / "train.py").write_text("import os, sys; sys.exit(int(os.environ['PROVISION_TASK']) == 3)")
    assert call(*at_saga, "--submit", "--array", "1,3") == 1
    assert "_3 failed with exit code 1" in capsys.readouterr().err


def test_a_job_that_slurm_starts_again_continues_from_its_checkpoints(
    cluster: SlurmCluster, at_saga: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text(AGAIN)
    assert call(*at_saga, "--submit", "--no-wait", "--requeue") == EXIT_JOB_LEFT
    number = capsys.readouterr().out.strip()
    folder = tmp_path / "runs" / number
    deadline = time.monotonic() + 60
    while not (folder / "checkpoints" / "epoch-0001").exists():
        assert time.monotonic() < deadline, cluster.run("scontrol", "show", "job", number).stdout
        time.sleep(0.2)
    cluster.run("scontrol", "requeue", number)
    cluster.start_again(number)
    assert cluster.wait(number, timeout_s=180) == "COMPLETED"
    assert json.loads((folder / "words.json").read_text()) == ["--resume-from", str(folder / "checkpoints")]
    said = (tmp_path / f"single-accel-{number}.out").read_text()
    starts = [line for line in said.splitlines() if line.startswith("output: ")]
    assert len(starts) == 2, "the second run writes to the end of the file"
    assert "this job has run before" in said


# The shell that submits

SHELLS = {
    "nothing is exported": ((), ("--export=NONE",), {}),
    "one variable is exported": ((), ("--export=X=1",), {}),
    "the shell exports nothing": ((), (), {"SBATCH_EXPORT": "NONE"}),
    "a job with memory for its node": (("salloc", "--partition=normal", "--mem=300"), (), {}),
    "a step on one CPU": (
        (
            "salloc",
            "--partition=normal",
            "--mem=300",
            "srun",
            "--ntasks=1",
            "env",
            "SLURM_GPUS_PER_NODE=1",
            "SLURM_EXACT=1",
        ),
        (),
        {},
    ),
    "a heterogeneous job": (("salloc", "--partition=normal", ":", "--partition=accel"), (), {}),
}


@pytest.mark.parametrize("where", SHELLS)
def test_a_script_that_is_submitted_from_any_shell_starts_all_its_ranks(
    cluster: SlurmCluster, tmp_path: Path, where: str
) -> None:
    before, options, environ = SHELLS[where]
    site = profile("sigma2-saga")
    asked = UserJob(
        kind="horovod",
        site=site,
        arch=replace(site.arch("accel"), provided=("/dev/null",)),
        command="a test",
        module="tensorflow/2.15.1",
        modulepath="/site/modules",
        account="tests",
    )
    (tmp_path / "train.py").write_text(TRAIN)
    # What a login shell of the site has.
    given = f"export USERWORK={tmp_path}/work EBROOTCUDA=/site/cuda\nmodule() {{ :; }}\n"
    text = render_user_job(asked).replace("set -euo pipefail\n", f"{given}set -euo pipefail\n", 1)
    (tmp_path / "job.sh").write_text(text)
    words = (*before, "sbatch", "--parsable", *options, "job.sh")
    number = cluster.run(*words, cwd=tmp_path, environ=environ).stdout.strip()
    cluster.wait(number, timeout_s=120)
    ranks = [json.loads(path.read_text()) for path in (tmp_path / "work" / "runs" / number).glob("rank-*.json")]
    said = (tmp_path / f"horovod-accel-{number}.out").read_text()
    assert len(ranks) == 8, said
    assert {one["OMP_NUM_THREADS"] for one in ranks} == {"6"}
    assert {len(one["CUDA_VISIBLE_DEVICES"].split(",")) for one in ranks} == {1}


def test_variables_of_the_shell_do_not_change_a_job_that_the_tool_submits(
    cluster: SlurmCluster, at_saga: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {"PARTITION": "normal", "TIMELIMIT": "00:04:00", "JOB_NAME": "foo", "CLUSTERS": "other"}.items():
        monkeypatch.setenv(f"SBATCH_{name}", value)
    monkeypatch.setenv("SLURM_CLUSTERS", "other")
    for name, value in {"JOB_ID": "99", "MEM_PER_NODE": "300", "CPU_BIND": "map_cpu:0", "NTASKS": "1"}.items():
        monkeypatch.setenv(f"SLURM_{name}", value)  # the shell runs in a job
    assert call(*at_saga, "--submit", "--no-wait", "--json") == EXIT_JOB_LEFT
    out, err = capsys.readouterr()
    number = json.loads(out)["result"]["job"]
    shown = cluster.run("scontrol", "show", "job", "--oneliner", number).stdout
    assert " Partition=accel " in shown and " TimeLimit=00:30:00 " in shown and " JobName=single-accel " in shown
    assert "SBATCH_PARTITION SBATCH_TIMELIMIT" in err
    assert call("job", "follow", number, "--site", "sigma2-saga") == 0


@pytest.mark.parametrize("prints", ["without --parsable", "nothing"])
def test_a_program_of_the_site_in_place_of_sbatch_may_print_what_it_wants(
    at_saga: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], prints: str
) -> None:
    wrapper = tmp_path / "bin" / "sbatch"
    wrapper.parent.mkdir()
    quiet = " >/dev/null" if prints == "nothing" else ""
    real = shutil.which("sbatch")
    wrapper.write_text(f'#!/bin/bash\n[ "$1" = --parsable ] && shift\necho welcome\n{real} "$@"{quiet}\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{wrapper.parent}:{os.environ['PATH']}")
    code = call(*at_saga, "--submit")
    err = capsys.readouterr().err
    assert "refused" not in err
    assert (code, "printed no job ID" in err) == ((1, True) if quiet else (0, False)), err
    assert list(tmp_path.glob("single-accel-*.sh")), "a job that waits keeps its script"


def test_a_heterogeneous_job_is_followed_to_the_end_of_all_its_components(
    cluster: SlurmCluster, at_saga: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = "#SBATCH --partition=normal --time=2\n#SBATCH hetjob\n#SBATCH --partition=accel --time=2\nsleep 3\n"
    (tmp_path / "het.sh").write_text(f"#!/bin/bash\n{script}")
    number = cluster.run("sbatch", "--parsable", "het.sh", cwd=tmp_path).stdout.strip()
    assert call("job", "follow", number, "--site", "sigma2-saga") == 0, capsys.readouterr().err
    assert f"job {number} finished" in capsys.readouterr().out
    assert call("job", "follow", f"{number}+1", "--site", "sigma2-saga") == 0


# What Slurm says of its partitions and nodes

BEYOND = {
    "--time": ("99:00:00", "time"),
    "--queue": ("accell", "partition"),
    "--constraint": ("hasvell", "feature"),
    "--nodes": ("3", "3 nodes"),
}


@pytest.mark.parametrize("option", BEYOND)
def test_what_slurm_would_refuse_is_noted_and_not_submitted(
    limited: SlurmCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    option: str,
) -> None:
    value, word = BEYOND[option]
    (tmp_path / "train.py").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLURM_CONF", str(limited.conf))
    asked = ["job", "horovod", "--site", str(write_plain(tmp_path)), "--module", "a/1", option, value, "--no-lint"]
    assert call(*asked) == 0
    assert f"{word}" in (err := capsys.readouterr().err) and "note: " in err
    assert call(*asked, "--submit") == 2
    assert word in capsys.readouterr().err
    assert limited.run("squeue", "--noheader").stdout == ""


def test_the_doctor_compares_the_jobs_of_builds_with_slurm(
    limited: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SLURM_CONF", str(limited.conf))
    for changes, word in (
        ((), ""),
        (('time = "03:00:00"', 'time = "2-00:00:00"'), "`archs.gpu.job.time`"),
        (('partition = "accel"', 'partition = "acel"'), "`archs.gpu.job.partition`"),
        (('partition = "accel"', 'partition = "accel", constraint = "hasvell"'), "`archs.gpu.job.constraint`"),
        (("per_node = 4", "per_node = 8"), "`archs.gpu.gpu`"),
        (("ranks_per_node = 4", "ranks_per_node = 4, nodes = 3"), "`archs.gpu.proof.nodes`"),
    ):
        call("doctor", "--site", str(write_plain(tmp_path, *changes)), "--json")
        seen = [one for one in envelope(capsys)["result"]["observations"] if one["group"] == "scheduler"]
        bad = [one for one in seen if one["state"] == "bad"]
        assert [word in one["hint"] for one in bad] == [True] * bool(word), (changes, seen)
        assert ["MpiDefault" in one["evidence"][0] for one in seen if one["state"] == "note"] == [True]


@pytest.fixture(scope="module")
def limited() -> Iterator[SlurmCluster]:
    """Two nodes with four GPUs, in a partition of three hours, and no type of MPI for a bare srun."""
    groups = (NodeGroup(name="gpu", cpus=24, memory_mb=384 * 1024, gres={"gpu:4": "/dev/tty[1-4]"}),)
    with SlurmCluster(node_groups=groups, partitions=(Partition(name="accel", groups=("gpu",)),)) as one:
        one.run("scontrol", "update", "PartitionName=accel", "MaxTime=03:00:00")
        yield one


def write_plain(folder: Path, *changes: str) -> Path:
    """A profile of that cluster, which says nothing about limits, with one text replaced by another."""
    text = f"""
name = "plain"
root = "{folder}/root"
stack = "tensorflow-2.15.1"
[scheduler]
system = "slurm"
gpus = "gres"
[modules]
system = "lmod"
init = "/usr/share/lmod/lmod/init/bash"
[archs.gpu]
target = "x86_64"
stack = "tensorflow-2.15.1-gpu"
mpi = {{ provider = "site" }}
job = {{ partition = "accel", time = "03:00:00" }}
node = {{ cores = 24 }}
gpu = {{ per_node = 4, capabilities = ["80"] }}
proof = {{ ranks_per_node = 4 }}
"""
    path = folder / "plain.toml"
    path.write_text(text.replace(*changes) if changes else text)
    return path


# What stands in a job script, and the failure that `explain` names from the log.
FAILING_JOBS = {
    "srun finds no such program": ("srun no-such-program", "program-missing-on-node"),
    "srun knows no such MPI": ("srun --mpi=pmi9 true", "srun-mpi"),
    "srun asks for more tasks than the job has": ("srun -n 64 true", "step-cannot-start"),
    "a mistake in the training script": ("python3 train.py", "error-in-program"),
    "the job cancels itself": ("scancel $SLURM_JOB_ID; sleep 30", "job-cancelled"),
}


def test_explain_reads_the_log_of_a_job_where_slurm_wrote_it(
    cluster: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    work, elsewhere = tmp_path / "work", tmp_path / "elsewhere"
    work.mkdir()
    elsewhere.mkdir()
    (work / "train.py").write_text("def main():\n    return {}['x']\n\n\nmain()\n")
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("SLURM_CONF", str(cluster.conf))
    monkeypatch.setenv("PROVISION_ROOT", str(tmp_path / "root"))
    numbers = {}
    for name, (command, _) in FAILING_JOBS.items():
        (work / "job.sh").write_text(
            f"#!/bin/bash\n#SBATCH --output=out-%j.log --time=2 --partition=normal\n{command}\n"
        )
        numbers[name] = cluster.run("sbatch", "--parsable", "--ntasks=1", "job.sh", cwd=work).stdout.strip()
    for name, number in numbers.items():
        cluster.wait(number, timeout_s=60)
        code = call("explain", number, "--site", "sigma2-saga", "--json")
        result = envelope(capsys)["result"]
        assert (code, result["failure"]) == (1, FAILING_JOBS[name][1]), (name, result)
        assert result["log"] == str(work / f"out-{number}.log")
