"""What is said of a build that runs elsewhere: how to follow it, resume, or cancel."""

from __future__ import annotations

from golden_files import facts_of, request_for, slurm_site
from provision.commands.shared.following import stopped_following, waiting_text
from provision.model.facts import Existing
from provision.planning.planner import make_plan

PLAN = make_plan(request_for(slurm_site()), facts_of(slurm_site()), Existing())
HOLDER = {"user": "alice", "host": "n1", "pid": 7, "since": "noon"}


def test_waiting_for_a_job_shows_how_to_follow_it() -> None:
    begin = f"waiting: {PLAN.environment} is being built by alice on n1, process 7"
    assert waiting_text(PLAN, dict(HOLDER), "cluster") == f"{begin}, since noon"
    follow = "`provision job follow 42 --site cluster` shows its progress"
    assert waiting_text(PLAN, {**HOLDER, "job": "42"}, "cluster") == f"{begin}, job 42, since noon; {follow}"


def test_stopping_to_follow_shows_how_to_resume_or_cancel() -> None:
    error = stopped_following("42", "provision job follow 42 --site cluster", slurm_site())
    assert error.message == "stopped following job 42, which keeps running"
    assert error.hint == "resume: `provision job follow 42 --site cluster`; cancel: `scancel 42`"
    assert error.exit_code == 130
