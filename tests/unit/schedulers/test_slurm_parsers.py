"""Slurm: the parsers read recorded output (of 22.05), and options are quoted as sbatch reads them."""

from __future__ import annotations

import dataclasses
import re

import pytest

from golden_files import Words
from parts.paths import RECORDED
from provision.model.batch import Batch
from provision.profile.scheduler import GpuSpelling, Scheduler
from provision.schedulers.slurm import parse_config, parse_mpi_types, parse_node_kinds
from provision.schedulers.slurm import scheduler as slurm
from provision.schedulers.status import ENDED, JobStatus, ending

ANSWERS = RECORDED / "slurm-22.05"


def recorded(name: str) -> str:
    """The recorded output with this file name."""
    return (ANSWERS / name).read_text(encoding="utf-8")


def status(name: str) -> JobStatus:
    """The status in `scontrol-show-job-<name>.txt`."""
    parsed = slurm.parse_status(recorded(f"scontrol-show-job-{name}.txt"))
    assert parsed is not None
    return parsed


RECORDED_ENDS = {
    "completed": "COMPLETED",
    "failed": "FAILED",
    "failed-by-signal": "FAILED",
    "timeout": "TIMEOUT",
    "cancelled": "CANCELLED",
    "cancelled-while-pending": "CANCELLED",
    "cancelled-by-dependency": "CANCELLED",
}


def test_each_ending_of_a_slurm_job_is_described(words: Words) -> None:
    recorded_ends = {name: status(name) for name in RECORDED_ENDS}
    assert {name: one.state for name, one in recorded_ends.items()} == RECORDED_ENDS
    ended = dataclasses.replace(status("failed"), job="1", run_time="00:10:00", time_limit="01:00:00")
    sentences = [ending(dataclasses.replace(ended, state=state)) for state in sorted(ENDED)]
    assert len(set(sentences)) == len(ENDED) and all(one.ended for one in recorded_ends.values())
    words("job", "\n".join([*map(ending, recorded_ends.values()), *sentences]))
    for state in ("PENDING", "RUNNING", "COMPLETING", "SUSPENDED", "CONFIGURING", "REQUEUED"):
        assert not dataclasses.replace(status("running"), state=state).ended


def test_all_fields_of_a_running_slurm_job_are_parsed() -> None:
    assert status("running") == JobStatus(
        job="1",
        state="RUNNING",
        reason="None",
        exit_code="0:0",
        output="/scratch/ops/timeout.log",
        time_limit="00:01:00",
        run_time="00:00:00",
        nodes="hsw1",
    )
    assert status("completed").nodes == "knl[1-2]"


def test_the_reason_of_a_waiting_slurm_job_is_explained(words: Words) -> None:
    names = ("pending-resources", "pending-held", "pending-time-limit", "array")
    never = ("pending-too-many-nodes", "pending-dependency-never-satisfied")
    waiting = {name: status(name) for name in (*names, *never)}
    assert {(one.state, one.ended) for one in waiting.values()} == {("PENDING", False)}
    assert all("never start" in slurm.waiting(waiting[name]) for name in never)
    # One with details, and one that is not known.
    reasons = ("ReqNodeNotAvail,_UnavailableNodes:knl1", "Licenses")
    others = [dataclasses.replace(waiting["array"], reason=reason) for reason in reasons]
    words("job", "\n".join(slurm.waiting(one) for one in (*waiting.values(), *others)))


def test_every_recorded_job_status_is_parsed() -> None:
    names = sorted(ANSWERS.glob("scontrol-show-job-*.txt"))
    assert len(names) >= 13
    for path in names:
        parsed = slurm.parse_status(path.read_text(encoding="utf-8"))
        assert parsed is not None
        assert parsed.job.isdigit()
        assert parsed.output.startswith("/scratch/ops/")
        assert re.fullmatch(r"\d+:\d+", parsed.exit_code)
    for name in ("scontrol-unknown-job.err.txt", "no-controller.err.txt", "sbatch.txt"):
        assert slurm.parse_status(recorded(name)) is None
    assert slurm.parse_status("") is None


def test_the_job_id_is_parsed_and_a_refusal_has_none() -> None:
    assert slurm.parse_job_id(recorded("sbatch-parsable.txt")) == "15"
    assert slurm.parse_job_id(recorded("sbatch.txt")) is not None
    refused = sorted(path.name for path in ANSWERS.glob("sbatch-*.err.txt"))
    assert refused and [slurm.parse_job_id(recorded(name)) for name in refused] == [None] * len(refused)


def test_the_commands_request_the_output_that_the_parsers_read() -> None:
    assert slurm.submit_argv("/site/job.sh") == ("sbatch", "--parsable", "/site/job.sh")
    assert slurm.status_argv("7") == ("scontrol", "--federation", "show", "job", "--oneliner", "7")


BATCH = Batch(
    scheduler=Scheduler(name="slurm", options=("--signal=B:TERM@60",)),
    name="build",
    output="/site/build-%j.out",
    nodes=2,
    ranks_per_node=4,
    time="01:00:00",
    partition="knl",
    constraint="knl&quad",
    account="a1",
    options=("--mem=4G",),
)


def options(batch: Batch) -> list[str]:
    """The options in the directives of a job."""
    lines = [str(line) for line in slurm.directives(batch)]
    assert all(line.startswith("#SBATCH ") for line in lines)
    return [line.removeprefix("#SBATCH ") for line in lines]


def test_the_directives_request_the_shape_of_the_proof() -> None:
    """The options of the arch come after those of the site; file systems are licences; each has an explanation."""
    batch = dataclasses.replace(BATCH, filesystems=("SCRATCH", "cfs"))
    assert all(directive.meaning for directive in slurm.directives(batch))
    assert options(batch) == [
        *("--job-name=build", "--output=/site/build-%j.out", "--nodes=2", "--ntasks-per-node=4", "--time=01:00:00"),
        *("--exclusive", "--partition=knl", "--constraint=knl&quad", "--account=a1", "--licenses=SCRATCH,cfs"),
        *("--signal=B:TERM@60", "--mem=4G"),
    ]
    for spelling, written in (("per-cpu", ["--mem-per-cpu=8G"]), ("per-node", ["--mem=128G"]), ("none", [])):
        scheduler = Scheduler(name="slurm", options=(), memory=spelling)  # type: ignore[arg-type]
        batch = dataclasses.replace(BATCH, scheduler=scheduler, memory="8G", cpus_per_rank=4, options=())
        assert [option for option in options(batch) if "--mem" in option] == written


@pytest.mark.parametrize(
    ("spelling", "nodes", "ranks", "gpus", "written"),
    [
        ("gres", 1, 1, 2, "--gres=gpu:a100:2"),
        ("gpus-per-node", 2, 4, 4, "--gpus-per-node=a100:4"),
        ("gpus-per-task", 2, 4, 4, "--gpus-per-task=a100:1"),
        ("gpus-per-task", 1, 1, 2, "--gpus=a100:2"),
        ("gpus", 2, 4, 4, "--gpus=a100:8"),
    ],
)
def test_gpus_are_requested_with_the_option_of_the_site(
    spelling: GpuSpelling, nodes: int, ranks: int, gpus: int, written: str
) -> None:
    scheduler = Scheduler(name="slurm", options=(), gpus=spelling)
    batch = dataclasses.replace(
        BATCH, scheduler=scheduler, nodes=nodes, ranks_per_node=ranks, gpus_per_node=gpus, gpu_model="a100"
    )
    assert [option for option in options(batch) if "a100" in option] == [written]
    assert not [option for option in options(dataclasses.replace(batch, gpus_per_node=0)) if "gp" in option]


# Bad input and odd output


def test_a_space_in_the_output_and_a_comment_do_not_decide_the_status_of_a_job() -> None:
    text = recorded("scontrol-show-job-failed.txt").replace("/scratch/ops/failed.log", "/scratch/two words/failed.log")
    parsed = slurm.parse_status(text.replace(" Power=", " Comment=was JobState=COMPLETED  Power="))
    assert parsed is not None
    assert (parsed.output, parsed.state) == ("/scratch/two words/failed.log", "FAILED")


def test_the_mpi_types_of_srun_are_parsed() -> None:
    text = (ANSWERS / "srun-mpi-list.txt").read_text()
    assert parse_mpi_types(text) == ("pmix", "cray_shasta", "pmi2", "pmix_v4")


def test_what_slurm_says_of_its_partitions_nodes_and_components_is_read() -> None:
    work, gpu = slurm.parse_queues(recorded("scontrol-show-partition-oneliner.txt"))
    assert (work.name, work.default, work.opens, work.time_s, work.most_nodes, work.qos) == (
        *("work", True, True, None, None),
        (),
    )
    assert (gpu.name, gpu.default) == ("gpu", False)
    nodes = parse_node_kinds(recorded("sinfo-node-kinds.txt"))
    assert [(kind.partition, kind.gpu_counts, kind.features, kind.count) for kind in nodes] == [
        ("work", (), ("haswell",), 2),
        ("gpu", (("a100", 2),), ("skylake",), 2),
    ]
    assert parse_config(recorded("scontrol-show-config.txt"))["MpiDefault"] == "none"
    job = status("heterogeneous")
    assert (job.state, job.nodes) == ("RUNNING", "cn1,gp1")
