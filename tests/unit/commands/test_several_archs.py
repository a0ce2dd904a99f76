"""`build --arch … --arch … --submit`: a job for each arch; refusals, and one failure that stops no other."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from golden_files import Words
from parts.cli import call
from provision.commands.shared import following
from provision.commands.shared import submitting as several
from provision.errors import PlanError

Captured = pytest.CaptureFixture[str]
SITE = ("--site", "nersc-perlmutter")


@pytest.mark.parametrize(
    "command", [("--arch", "cpu", "--arch", "gpu"), ("--all-archs",), ("--all-archs", "--arch", "cpu", "--submit")]
)
def test_several_archs_need_jobs(command: tuple[str, ...], capsys: Captured, words: Words) -> None:
    assert call("build", *SITE, *command) == 2
    words("build", capsys.readouterr().err)


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """What replaces planning and the scheduler: `gpu` cannot be planned, `done` has nothing to do; returns what is submitted."""
    submitted: list[str] = []

    def prepare(args: SimpleNamespace) -> object:
        if args.arch == "gpu":
            raise PlanError("there is no CUDA", hint="load it")
        plan = SimpleNamespace(environment=f"{args.arch}/tensorflow/2.15.1-0")
        site = SimpleNamespace(scheduler=SimpleNamespace(name="slurm"), typed="nersc-perlmutter")
        job = None if args.arch == "done" else f"job of {args.arch}"
        return SimpleNamespace(target=SimpleNamespace(store=tmp_path, site=site), plan=plan, job=job)

    def submit(job: str, store: object) -> str:
        submitted.append(job)
        return str(len(submitted))

    monkeypatch.setattr(several, "prepare_job", prepare)
    monkeypatch.setattr(several, "command_to_use", lambda target, plan: f"module load {plan.environment}")
    monkeypatch.setattr(several, "submit", submit)
    monkeypatch.setattr(
        several, "refuse_unseen", lambda *given, **more: None
    )  # real jobs: tests/real/test_tiny_slurm.py
    monkeypatch.setattr(several, "remove_left_settings", lambda *args: None)
    return submitted


def test_each_arch_gets_its_job_and_a_refused_one_stops_no_other(
    prepared: list[str], capsys: Captured, words: Words
) -> None:
    command = ("--arch", "cpu", "--arch", "gpu", "--arch", "done", "--arch", "cpu", "--submit", "--no-wait")
    assert call("build", *SITE, *command) == 1
    out, err = capsys.readouterr()
    assert prepared == ["job of cpu"]
    lines = out.splitlines()
    assert [line.split()[0] for line in lines] == ["cpu", "gpu", "done"]
    assert lines[0].endswith("job 1: module load cpu/tensorflow/2.15.1-0")
    assert lines[1] == "gpu   refused"
    assert lines[2].endswith(": module load done/tensorflow/2.15.1-0") and "job" not in lines[2]
    words("build", out)
    assert "gpu: error: there is no CUDA" in err
    assert "gpu: hint: load it" in err


def test_jobs_that_are_left_running_have_an_exit_code_of_their_own(prepared: list[str], capsys: Captured) -> None:
    assert call("build", *SITE, "--arch", "cpu", "--arch", "knl", "--submit", "--no-wait", "--json") == 4
    builds = json.loads(capsys.readouterr().out)["result"]["builds"]
    assert [(build["arch"], build["state"], build["job"]) for build in builds] == [
        ("cpu", "submitted", "1"),
        ("knl", "submitted", "2"),
    ]


def test_what_becomes_of_each_job_is_the_result(
    prepared: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Captured, words: Words
) -> None:
    monkeypatch.setattr(
        following, "follow_all", lambda jobs: {"1": None, "2": PlanError("job 2 failed", hint="`provision fetch`")}
    )
    assert call("build", *SITE, "--arch", "cpu", "--arch", "knl", "--stack", "tensorflow-2.15.1", "--submit") == 1
    out, err = capsys.readouterr()
    first, second = out.splitlines()
    assert first.startswith("cpu ") and "job 1: module load" in first
    assert second == "knl  failed, job 2"
    words("build", out)
    at = f"--arch knl --stack tensorflow-2.15.1 {' '.join(SITE)}"
    assert f"knl: hint: `provision fetch {at}`" in err, "of the arch that failed, not of the last that was typed"


def test_ctrl_c_leaves_the_jobs_and_shows_how_to_follow_them(
    prepared: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Captured, words: Words
) -> None:
    def interrupt(jobs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(following, "follow_all", interrupt)
    assert call("build", *SITE, "--arch", "cpu", "--arch", "knl", "--submit") == 130
    err = capsys.readouterr().err
    words("build", err)
    assert "`provision job follow 2 --site nersc-perlmutter`" in err
