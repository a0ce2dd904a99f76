"""Slurm: what its programs printed (recorded from 22.05) is read as what it says, and options are written as it reads them."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from provision.model.job import Job
from provision.model.scheduler import Scheduler
from provision.model.smoke import Smoke
from provision.schedulers import slurm

RECORDED = Path(__file__).with_name("recorded") / "slurm-22.05"


def recorded(name: str) -> str:
    """What was recorded under this name."""
    return (RECORDED / name).read_text(encoding="utf-8")


def status(name: str) -> slurm.JobStatus:
    """The status in `scontrol-show-job-<name>.txt`."""
    found = slurm.parse_status(recorded(f"scontrol-show-job-{name}.txt"))
    assert found is not None
    return found


ENDINGS = {
    "completed": ("COMPLETED", "job 2 finished after 00:00:00"),
    "failed": ("FAILED", "job 3 failed with exit code 3 after 00:00:00"),
    "failed-by-signal": ("FAILED", "job 4 was ended by signal 11 after 00:00:00"),
    "timeout": ("TIMEOUT", "job 1 hit its time limit of 00:01:00"),
    "cancelled": ("CANCELLED", "job 5 was cancelled after 00:00:00"),
    "cancelled-while-pending": ("CANCELLED", "job 12 was cancelled before it began"),
    "cancelled-by-dependency": ("CANCELLED", "job 7 was cancelled before it began"),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_how_a_job_ended_is_told_as_exactly_that(name: str) -> None:
    state, words = ENDINGS[name]
    found = status(name)
    assert found.ended
    assert found.state == state
    assert slurm.ending(found).startswith(words)


def test_no_two_ways_to_end_are_told_alike() -> None:
    ended = dataclasses.replace(status("failed"), job="1", run_time="00:10:00", time_limit="01:00:00")
    told = {state: slurm.ending(dataclasses.replace(ended, state=state)) for state in slurm.ENDED}
    assert len(set(told.values())) == len(slurm.ENDED)
    assert told["OUT_OF_MEMORY"] == "job 1 used more memory than it asked for"
    assert "NODE_FAIL" in told["NODE_FAIL"]
    assert "PREEMPTED" in told["PREEMPTED"]


@pytest.mark.parametrize("state", ["PENDING", "RUNNING", "COMPLETING", "SUSPENDED", "CONFIGURING", "REQUEUED"])
def test_a_job_that_may_go_on_has_not_ended(state: str) -> None:
    assert not dataclasses.replace(status("running"), state=state).ended


def test_a_running_job_is_read_whole() -> None:
    assert status("running") == slurm.JobStatus(
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
    "pending-held": "JobHeldUser: held: `scontrol release` it",
    "pending-time-limit": "PartitionTimeLimit: asks for more time than its partition allows: it will never start",
    "array": "Resources: waits for nodes to become free",
}


@pytest.mark.parametrize("name", REASONS)
def test_why_a_job_waits_is_told_in_words(name: str) -> None:
    found = status(name)
    assert found.state == "PENDING"
    assert not found.ended
    assert slurm.waiting(found) == REASONS[name]


def test_a_reason_that_we_have_no_words_for_is_told_as_slurm_says_it() -> None:
    assert slurm.waiting(dataclasses.replace(status("pending-held"), reason="Licenses")) == "Licenses"


def test_every_recorded_job_is_read() -> None:
    names = sorted(RECORDED.glob("scontrol-show-job-*.txt"))
    assert len(names) >= 13
    for path in names:
        found = slurm.parse_status(path.read_text(encoding="utf-8"))
        assert found is not None
        assert found.job.isdigit()
        assert found.output.startswith("/scratch/ops/")
        assert re.fullmatch(r"\d+:\d+", found.exit_code)


@pytest.mark.parametrize("name", ["scontrol-unknown-job.err.txt", "no-controller.err.txt", "sbatch.txt"])
def test_what_is_no_job_is_no_status(name: str) -> None:
    assert slurm.parse_status(recorded(name)) is None
    assert slurm.parse_status("") is None


def test_the_id_of_a_submitted_job_is_read_alone_and_with_its_cluster() -> None:
    assert slurm.parse_job_id(recorded("sbatch-parsable.txt")) == "15"
    assert slurm.parse_job_id("123;knl\n") == "123"
    assert slurm.parse_job_id("sbatch: lua: be nice\n77\n") == "77"


@pytest.mark.parametrize("name", sorted(path.name for path in RECORDED.glob("sbatch-*.err.txt")))
def test_a_refusal_is_no_job_id(name: str) -> None:
    assert slurm.parse_job_id(recorded(name)) is None


def test_the_commands_ask_for_what_the_parsers_read() -> None:
    assert slurm.submit_argv("/site/job.sh") == ("sbatch", "--parsable", "/site/job.sh")
    assert slurm.status_argv("7") == ("scontrol", "show", "job", "--oneliner", "7")


JOB = Job(
    time="01:00:00",
    partition="knl",
    constraint="knl&quad",
    account="a1",
    qos=None,
    exclusive=True,
    cpus_per_task=0,
    options=("--mem=4G",),
)
SMOKE = Smoke(nodes=2, ranks_per_node=4, timeout_s=60)


def test_the_directives_ask_for_the_shape_of_the_proof() -> None:
    lines = slurm.directives(
        "build", "/site/build-%j.out", JOB, SMOKE, Scheduler(name="slurm", options=("--signal=B:TERM@60",))
    )
    assert lines == (
        "#SBATCH --job-name=build",
        "#SBATCH --output=/site/build-%j.out",
        "#SBATCH --nodes=2",
        "#SBATCH --ntasks-per-node=4",
        "#SBATCH --time=01:00:00",
        "#SBATCH --exclusive",
        "#SBATCH --partition=knl",
        "#SBATCH --constraint=knl&quad",
        "#SBATCH --account=a1",
        "#SBATCH --signal=B:TERM@60",
        "#SBATCH --mem=4G",
    )


def test_the_options_of_the_arch_come_after_those_of_the_site_so_that_they_win() -> None:
    job = dataclasses.replace(JOB, options=("--account=mine",))
    lines = slurm.directives("b", "/o", job, SMOKE, Scheduler(name="slurm", options=("--account=staff",)))
    assert lines.index("#SBATCH --account=staff") < lines.index("#SBATCH --account=mine")


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
def test_an_option_is_quoted_where_sbatch_needs_it(option: str, written: str) -> None:
    assert slurm.quoted(option) == written


# What is wrong


@pytest.mark.parametrize("option", ["-A staff", "-C knl quad", "--comment two words"])
def test_an_option_and_its_value_with_a_space_between_are_written_as_they_are(option: str) -> None:
    assert '""' not in slurm.quoted(option)


@pytest.mark.parametrize("name", ["pending-too-many-nodes", "pending-dependency-never-satisfied"])
def test_a_job_that_will_never_start_is_told_so(name: str) -> None:
    assert "never start" in slurm.waiting(status(name))


def test_a_reason_with_details_is_told_in_words_too() -> None:
    found = dataclasses.replace(status("pending-held"), reason="ReqNodeNotAvail,_UnavailableNodes:knl1")
    assert "down or reserved" in slurm.waiting(found)


def test_the_output_of_a_job_below_a_folder_with_a_space_is_found() -> None:
    text = recorded("scontrol-show-job-failed.txt").replace("/scratch/ops/failed.log", "/scratch/two words/failed.log")
    found = slurm.parse_status(text)
    assert found is not None
    assert found.output == "/scratch/two words/failed.log"


def test_a_comment_does_not_decide_the_state_of_a_job() -> None:
    text = recorded("scontrol-show-job-failed.txt").replace(" Power=", " Comment=was JobState=COMPLETED  Power=")
    found = slurm.parse_status(text)
    assert found is not None
    assert found.state == "FAILED"


def test_the_ways_to_start_mpi_are_read_with_the_versions_of_pmix_and_without_none() -> None:
    text = (Path(__file__).parent / "recorded" / "slurm-22.05" / "srun-mpi-list.txt").read_text()
    assert slurm.parse_mpi_types(text) == ("pmix", "cray_shasta", "pmi2", "pmix_v4")
