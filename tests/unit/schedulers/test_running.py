"""The running jobs of all users, as the three schedulers print them."""

from __future__ import annotations

import pytest

from provision.schedulers.cobalt import scheduler as cobalt
from provision.schedulers.pbs import scheduler as pbs
from provision.schedulers.slurm import scheduler as slurm
from provision.schedulers.status import RunningJob, elapsed


def test_slurm_prints_a_job_a_line() -> None:
    text = "42|alice|1-02:03:04\n43|bob|0:07\n\nslurm_load_jobs error: x\n"
    assert slurm.parse_running(text) == (
        RunningJob(job="42", user="alice", seconds=93784),
        RunningJob(job="43", user="bob", seconds=7),
    )


def test_pbs_prints_all_values_and_only_what_runs_counts() -> None:
    text = """Job Id: 12.pbs
    Job_Name = a
    Job_Owner = alice@login1
    resources_used.walltime = 01:00:01
    job_state = R
    Variable_List = X=1,
\tY=2

Job Id: 13.pbs
    Job_Owner = bob@login1
    job_state = Q
Job Id: 14.pbs
    Job_Owner = carol@login1
    job_state = R
"""
    assert pbs.parse_running(text) == (
        RunningJob(job="12.pbs", user="alice", seconds=3601),
        RunningJob(job="14.pbs", user="carol", seconds=0),
    )


def test_cobalt_prints_columns_and_only_what_runs_counts() -> None:
    text = (
        "JobID  User   State    RunTime\n=====\n77 alice running 00:10:00\n78 bob queued N/A\n79 eve exiting 1:00:00\n"
    )
    assert cobalt.parse_running(text) == (
        RunningJob(job="77", user="alice", seconds=600),
        RunningJob(job="79", user="eve", seconds=3600),
    )


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("9:59", 599), ("01:02:03", 3723), ("2-00:00:01", 172801), ("N/A", 0), ("", 0), ("-", 0), ("1:x", 0), ("٣:00", 0)],
)
def test_a_run_time_is_read_or_the_job_has_just_started(text: str, seconds: int) -> None:
    assert elapsed(text) == seconds
