"""Slurm: the parsers read recorded output (of 22.05), and options are quoted as sbatch reads them."""

from __future__ import annotations

import dataclasses
import re

import pytest

from golden_files import Words
from parts.paths import RECORDED
from provision.model.batch import Batch
from provision.profile.scheduler import GpuSpelling, Scheduler
from provision.schedulers import slurm
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


ENDINGS = {
    "completed": ("COMPLETED", "job 2 finished after 00:00:00"),
    "failed": ("FAILED", "job 3 failed with exit code 3 after 00:00:00"),
    "failed-by-signal": ("FAILED", "job 4 was ended by signal 11 after 00:00:00"),
    "timeout": ("TIMEOUT", "job 1 reached its time limit of 00:01:00"),
    "cancelled": ("CANCELLED", "job 5 was cancelled after 00:00:00"),
    "cancelled-while-pending": ("CANCELLED", "job 12 was cancelled before it started"),
    "cancelled-by-dependency": ("CANCELLED", "job 7 was cancelled before it started"),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_each_ending_of_a_slurm_job_is_described(name: str, words: Words) -> None:
    state, words = ENDINGS[name]
    parsed = status(name)
    assert parsed.ended
    assert parsed.state == state
    assert ending(parsed).startswith(words)


def test_each_final_state_has_a_different_description(words: Words) -> None:
    ended = dataclasses.replace(status("failed"), job="1", run_time="00:10:00", time_limit="01:00:00")
    sentences = {state: ending(dataclasses.replace(ended, state=state)) for state in ENDED}
    assert len(set(sentences.values())) == len(ENDED)
    words("job", "\n".join(sentences[state] for state in sorted(sentences)))
    assert "NODE_FAIL" in sentences["NODE_FAIL"]
    assert "PREEMPTED" in sentences["PREEMPTED"]


@pytest.mark.parametrize("state", ["PENDING", "RUNNING", "COMPLETING", "SUSPENDED", "CONFIGURING", "REQUEUED"])
def test_a_job_in_a_state_that_is_not_final_has_not_ended(state: str) -> None:
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


REASONS = {
    "pending-resources": "Resources: waits for nodes to become free",
    "pending-held": "JobHeldUser: held by its user; `scontrol release` releases it",
    "pending-time-limit": "PartitionTimeLimit: requests more time than its partition allows: it will never start",
    "array": "Resources: waits for nodes to become free",
}


@pytest.mark.parametrize("name", REASONS)
def test_the_reason_of_a_waiting_slurm_job_is_explained(name: str) -> None:
    parsed = status(name)
    assert parsed.state == "PENDING"
    assert not parsed.ended
    assert slurm.waiting(parsed) == REASONS[name]


def test_an_unknown_waiting_reason_is_shown_as_slurm_prints_it() -> None:
    assert slurm.waiting(dataclasses.replace(status("pending-held"), reason="Licenses")) == "Licenses"


def test_every_recorded_job_status_is_parsed() -> None:
    names = sorted(ANSWERS.glob("scontrol-show-job-*.txt"))
    assert len(names) >= 13
    for path in names:
        parsed = slurm.parse_status(path.read_text(encoding="utf-8"))
        assert parsed is not None
        assert parsed.job.isdigit()
        assert parsed.output.startswith("/scratch/ops/")
        assert re.fullmatch(r"\d+:\d+", parsed.exit_code)


@pytest.mark.parametrize("name", ["scontrol-unknown-job.err.txt", "no-controller.err.txt", "sbatch.txt"])
def test_output_without_a_job_gives_no_status(name: str) -> None:
    assert slurm.parse_status(recorded(name)) is None
    assert slurm.parse_status("") is None


def test_the_job_id_is_parsed_with_and_without_a_cluster_name() -> None:
    assert slurm.parse_job_id(recorded("sbatch-parsable.txt")) == "15"
    assert slurm.parse_job_id("123;knl\n") == "123"
    assert slurm.parse_job_id("sbatch: lua: be nice\n77\n") == "77"


@pytest.mark.parametrize("name", sorted(path.name for path in ANSWERS.glob("sbatch-*.err.txt")))
def test_a_refused_submission_gives_no_job_id(name: str) -> None:
    assert slurm.parse_job_id(recorded(name)) is None


def test_the_commands_request_the_output_that_the_parsers_read() -> None:
    assert slurm.submit_argv("/site/job.sh") == ("sbatch", "--parsable", "/site/job.sh")
    assert slurm.status_argv("7") == ("scontrol", "show", "job", "--oneliner", "7")


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
    assert options(BATCH) == [
        "--job-name=build",
        "--output=/site/build-%j.out",
        "--nodes=2",
        "--ntasks-per-node=4",
        "--time=01:00:00",
        "--exclusive",
        "--partition=knl",
        "--constraint=knl&quad",
        "--account=a1",
        "--signal=B:TERM@60",
        "--mem=4G",
    ]


def test_the_options_of_the_arch_come_after_those_of_the_site() -> None:
    site = Scheduler(name="slurm", options=("--account=staff",))
    lines = options(dataclasses.replace(BATCH, scheduler=site, options=("--account=mine",)))
    assert lines.index("--account=staff") < lines.index("--account=mine")


def test_every_directive_has_an_explanation() -> None:
    assert all(directive.meaning for directive in slurm.directives(BATCH))


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


def test_memory_is_requested_per_cpu_or_per_node() -> None:
    for spelling, written in (("per-cpu", ["--mem-per-cpu=8G"]), ("per-node", ["--mem=128G"]), ("none", [])):
        scheduler = Scheduler(name="slurm", options=(), memory=spelling)  # type: ignore[arg-type]
        batch = dataclasses.replace(BATCH, scheduler=scheduler, memory="8G", cpus_per_rank=4, options=())
        assert [option for option in options(batch) if "--mem" in option] == written


def test_file_systems_are_requested_as_licenses() -> None:
    assert "--licenses=SCRATCH,cfs" in options(dataclasses.replace(BATCH, filesystems=("SCRATCH", "cfs")))


@pytest.mark.parametrize(
    ("option", "written"),
    [
        ("--mem=4G", "--mem=4G"),
        ("--exclusive", "--exclusive"),
        ("-C", "-C"),
        ("--comment=two words", '--comment="two words"'),
        ('--comment=a "quoted" word', '--comment="a \\"quoted\\" word"'),
        ("--comment=back\\slash", '--comment="back\\\\slash"'),
        ("--comment=it's # no comment", '--comment="it\'s # no comment"'),
        ("--output=/site/with space/%j.out", '--output="/site/with space/%j.out"'),
        ("--comment=a=b c", '--comment="a=b c"'),
    ],
)
def test_an_option_is_quoted_when_sbatch_needs_it(option: str, written: str) -> None:
    assert slurm.quoted(option) == written


# Bad input and odd output


@pytest.mark.parametrize("option", ["-A staff", "-C knl quad", "--comment two words"])
def test_an_option_separated_from_its_value_by_a_space_is_not_quoted(option: str) -> None:
    assert '""' not in slurm.quoted(option)


@pytest.mark.parametrize("name", ["pending-too-many-nodes", "pending-dependency-never-satisfied"])
def test_a_job_that_will_never_start_is_described_so(name: str) -> None:
    assert "never start" in slurm.waiting(status(name))


def test_a_waiting_reason_with_details_is_explained() -> None:
    parsed = dataclasses.replace(status("pending-held"), reason="ReqNodeNotAvail,_UnavailableNodes:knl1")
    assert "down or reserved" in slurm.waiting(parsed)


def test_the_output_of_a_job_below_a_folder_with_a_space_is_found() -> None:
    text = recorded("scontrol-show-job-failed.txt").replace("/scratch/ops/failed.log", "/scratch/two words/failed.log")
    parsed = slurm.parse_status(text)
    assert parsed is not None
    assert parsed.output == "/scratch/two words/failed.log"


def test_a_comment_does_not_decide_the_state_of_a_job() -> None:
    text = recorded("scontrol-show-job-failed.txt").replace(" Power=", " Comment=was JobState=COMPLETED  Power=")
    parsed = slurm.parse_status(text)
    assert parsed is not None
    assert parsed.state == "FAILED"


def test_the_mpi_types_of_srun_are_parsed() -> None:
    text = (ANSWERS / "srun-mpi-list.txt").read_text()
    assert slurm.parse_mpi_types(text) == ("pmix", "cray_shasta", "pmi2", "pmix_v4")
