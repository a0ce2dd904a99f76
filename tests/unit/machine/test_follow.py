"""A job that failed is described by the error that its build wrote to the events, and never by the words of its output."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from golden_files import Words
from provision.errors import CommandError, JobError, StoreError
from provision.machine.root.event_file import to_file
from provision.machine.root.store import Store
from provision.machine.submission import follow as following
from provision.model.event import Event, emit_event, error_event
from provision.schedulers.status import JobStatus

Ended = Callable[..., JobError]


@pytest.fixture
def store(store: Store) -> Store:
    """A root with a folder of jobs."""
    store.make_jobs()
    return store


@pytest.fixture
def ended(store: Store, monkeypatch: pytest.MonkeyPatch) -> Ended:
    """Follow a job that the scheduler says has ended; returns the error."""

    def follow(state: str | None = "FAILED", output: str = "") -> JobError:
        file = store.jobs / "x-42.out"
        file.write_text(output)
        status = JobStatus(job="42", state=state, output=str(file), exit_code="1:0") if state else None
        monkeypatch.setattr(following, "status", lambda *_: status)
        with pytest.raises(JobError) as caught:
            following.follow("42", "slurm", store, lambda event: None, pause=lambda seconds: None)
        return caught.value

    return follow


def write_events(store: Store, *events: Event) -> None:
    """What the build in the job wrote."""
    (store.jobs / "x-42.events.jsonl").write_text("".join(map(emit_event, events)))


def test_the_error_of_the_build_is_the_evidence_and_the_cause(store: Store, ended: Ended, words: Words) -> None:
    failure = StoreError("the disk is full", evidence=["df says 0"], hint="free some", log="/l/x.log", kind="no-space")
    write_events(store, error_event(failure))
    error = ended(output="error: another story\n\nhint: misleading\n")
    assert error.evidence[:2] == ("the disk is full", "  df says 0")
    assert error.evidence[2].endswith(": /l/x.log")
    words("job", "\n".join(error.to_lines()).replace(str(store.jobs), "JOBS"))
    assert (error.hint, error.log, error.kind, error.details["state"]) == ("free some", "/l/x.log", "job", "FAILED")
    assert error.to_dict()["cause"] == failure.to_dict()
    assert "another story" not in " ".join(error.evidence)


def test_a_job_that_was_killed_shows_the_lines_that_look_like_errors(ended: Ended) -> None:
    error = ended(output="begin\nerror: the node went away\n\nhint: `this is not read`\n")
    assert "error: the node went away" in error.evidence
    assert "this is not read" not in str(error.hint)
    assert error.to_dict()["cause"] is None


def test_the_state_of_the_job_decides_what_to_do_about_a_time_limit(store: Store, ended: Ended) -> None:
    write_events(store, error_event(StoreError("interrupted", hint="run it again")))
    assert "`job.time`" in str(ended("TIMEOUT").hint)


def test_a_job_that_the_scheduler_forgot_is_described_by_its_events(store: Store, ended: Ended) -> None:
    write_events(store, error_event(StoreError("the disk is full")))
    error = ended(None)
    assert (error.details["state"], error.evidence[0]) == ("UNKNOWN", "the disk is full")


def test_events_of_a_job_that_was_started_again_are_read_from_their_beginning(tmp_path: Path) -> None:
    """It writes the file anew."""
    path = tmp_path / "events.jsonl"
    follower = following.Follower(path)
    first, second = Event(kind="say", text="the first run, which was ended"), Event(kind="say", text="again")
    for event in (first, second):
        with to_file(path) as listen:
            listen(event)
        assert follower.events() == [event]


def test_several_jobs_are_followed_and_one_failure_stops_no_other(
    store: Store, monkeypatch: pytest.MonkeyPatch, words: Words
) -> None:
    states = {
        "1": ["PENDING", "RUNNING", "COMPLETED"],
        "2": ["RUNNING", "FAILED"],
        "3": ["PENDING", "PENDING", "PENDING", "RUNNING", "COMPLETED"],
    }

    def status(job: str, scheduler: str) -> JobStatus:
        state = states[job].pop(0) if len(states[job]) > 1 else states[job][0]
        return JobStatus(job=job, state=state, output=str(store.jobs / "x.out"), exit_code="1:0")

    monkeypatch.setattr(following, "status", status)
    heard: dict[str, list[str]] = {job: [] for job in states}
    jobs = [
        following.FollowedJob(job, "slurm", store, lambda event, job=job: heard[job].append(event.text))  # type: ignore[misc]
        for job in states
    ]
    pauses: list[float] = []
    results = following.follow_all(jobs, pause=pauses.append)
    assert {job: type(error) for job, error in results.items()} == {"1": type(None), "2": JobError, "3": type(None)}
    assert len(heard["1"]) == 2 and all(line.startswith("job 1 ") for line in heard["1"])
    words("job", "\n".join(heard["1"]))
    assert heard["2"][-1].startswith("job 2 failed")
    assert len(pauses) == 4
    assert set(pauses) == {1.0}


def test_a_scheduler_that_stops_answering_is_asked_again(
    store: Store, monkeypatch: pytest.MonkeyPatch, words: Words
) -> None:
    answers: list[JobStatus | CommandError] = [
        JobStatus(job="1", state="RUNNING"),
        CommandError("Slurm does not answer", evidence=["timeout"]),
        CommandError("Slurm does not answer", evidence=["timeout"]),
        JobStatus(job="1", state="COMPLETED"),
    ]

    def status(job: str, scheduler: str) -> JobStatus:
        answer = answers.pop(0)
        if isinstance(answer, CommandError):
            raise answer
        return answer

    monkeypatch.setattr(following, "status", status)
    said: list[str] = []
    pauses: list[float] = []
    following.follow("1", "slurm", store, lambda event: said.append(event.text), pause=pauses.append)
    running, silent = said
    assert running.startswith("job 1 ") and silent.endswith(": timeout")
    words("job", "\n".join(said))
    assert pauses == [1.0, 5.0, 5.0]
    answers = [CommandError("Slurm does not answer")]
    with pytest.raises(CommandError):
        following.follow("1", "slurm", store, lambda event: None)


@pytest.mark.parametrize("program", ["echo slurm_load_jobs error: Unable to contact >&2; exit 1", None])
def test_a_scheduler_that_does_not_answer_at_first_names_the_command_that_must_work(
    program: str | None, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: Words
) -> None:
    if program:
        (tmp_path / "scontrol").write_text(f"#!/bin/sh\n{program}\n")
        (tmp_path / "scontrol").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin" if program else str(tmp_path))
    with pytest.raises(CommandError, match="Slurm does not answer") as caught:
        following.follow("7", "slurm", store, lambda event: None)
    assert ("Unable to contact" if program else "`scontrol` cannot be run") in caught.value.evidence[0]
    assert "`squeue --me`" in str(caught.value.hint)
    words("job", str(caught.value.hint))
