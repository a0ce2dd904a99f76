"""A job gets the settings of the package index from a file that only its builder can read, and the file goes with the job."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
import stat
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from golden_files import SUBMITTER, Words, facts_of, request_for, slurm_site
from parts.cli import call
from parts.credentials import SHAPES, Shape, leaks
from provision.errors import ConfigError, JobError
from provision.jobs.build_job import BuildScript, build_script, profile_script
from provision.knowledge.index_settings import is_index_setting
from provision.machine.root.store import Store
from provision.machine.submission import submit as submission
from provision.machine.submission.job_settings import read_settings, settings_from, write_settings
from provision.machine.submission.render_jobs import render_build_job
from provision.machine.submission.submit import keep_settings, remove_left_settings, submit
from provision.model.facts import Existing
from provision.planning.planner import make_plan
from provision.schedulers.status import JobStatus

IN_JOB = {"SLURM_JOB_ID": "42", "SLURMD_NODENAME": "n1"}
SETTINGS = {"PIP_INDEX_URL": "https://gul:Kanarie7fugl@h/simple", "https_proxy": "gul:Kana7 rie@h:1"}


def job_with(environ: Mapping[str, str], folder: Path, *, submitted: bool = False) -> BuildScript:
    """The job of a build that is written in a shell with these variables."""
    site = slurm_site()
    plan = make_plan(request_for(site), facts_of(site), Existing())
    submitter = dataclasses.replace(SUBMITTER, environ=environ, jobs=str(folder))
    return render_build_job(build_script(request_for(site), plan, submitter, submitted=submitted))


@pytest.fixture
def jobs(store: Store) -> Path:
    """The folder of jobs."""
    store.make_jobs()
    return store.jobs


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_a_script_has_no_setting_and_the_file_has_all(shape: Shape, jobs: Path) -> None:
    environ = {**shape.environ("index.example.org:8443"), "PROVISION_ROOT": "/site/root", "OTHER": "x"}
    job = job_with(environ, jobs)
    assert leaks(job.text, shape) == []
    assert f"--settings {jobs}/{job.name}.settings" in job.text
    keep_settings(job)
    (path,) = jobs.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_settings(path) == (None, shape.environ("index.example.org:8443"))


def test_a_job_without_settings_needs_no_file(jobs: Path) -> None:
    job = job_with({"PROVISION_ROOT": "/site/root", "https_proxy": ""}, jobs)
    assert "--settings" not in job.text
    keep_settings(job)
    assert not list(jobs.iterdir())


def test_a_script_from_the_profile_alone_has_no_settings(jobs: Path) -> None:
    request = request_for(slurm_site())
    submitter = dataclasses.replace(SUBMITTER, environ=SETTINGS)
    script = render_build_job(profile_script(request.site, request.arch, request.stack, submitter))
    assert script.settings_file is None
    assert "Kana" not in script.text


def test_the_file_is_private_from_its_beginning(jobs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modes = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda number: (modes.append(os.fstat(number).st_mode & 0o777), real(number)))
    before = os.umask(0)
    try:
        write_settings(jobs / "x.settings", SETTINGS)
    finally:
        os.umask(before)
    assert modes == [0o600]


def test_a_link_in_its_place_is_replaced_and_not_followed(jobs: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text("precious")
    (jobs / "x.settings").symlink_to(mine)
    write_settings(jobs / "x.settings", SETTINGS)
    assert mine.read_text() == "precious"
    assert not (jobs / "x.settings").is_symlink()


@pytest.mark.parametrize("end", [None, ConfigError, KeyboardInterrupt])
def test_a_build_has_the_settings_and_only_a_signal_keeps_the_file(
    end: type[BaseException] | None, jobs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a signal the job may start again."""
    for name in SETTINGS:
        monkeypatch.setenv(name, "replaced")
    write_settings(jobs / "x.settings", SETTINGS)
    with pytest.raises(end) if end else contextlib.nullcontext(), settings_from(jobs / "x.settings"):
        assert {name: os.environ[name] for name in SETTINGS} == SETTINGS
        if end:
            raise end("x")
    assert (jobs / "x.settings").exists() is (end is KeyboardInterrupt)


@pytest.mark.parametrize("environ", [{"https_proxy": "gul:Kana7@h:1"}, {}], ids=["exported", "empty"])
def test_a_script_can_be_submitted_again_after_its_file_went(
    environ: dict[str, str],
    jobs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: Words,
) -> None:
    others = {name: value for name, value in os.environ.items() if not is_index_setting(name)}
    monkeypatch.setattr(os, "environ", {**others, **environ, **IN_JOB})
    command = (
        "build",
        "--site",
        "nosuch",
        "--arch",
        "cpu",
        "--settings",
        str(jobs / "x.settings"),
        "--events",
        str(tmp_path / "events"),
    )
    assert call(*command) == 2
    out = capsys.readouterr().err
    (note,) = [line for line in out.splitlines() if line.startswith("note: ")]
    assert str(jobs / "x.settings") in note
    assert ("https_proxy" in note) is bool(environ)
    words("build", note.replace(str(jobs), "JOBS"))
    assert "nosuch" in out.partition("error:")[2]  # the build went on
    assert "note: the settings" in (tmp_path / "events").read_text()
    assert "Kana7" not in out + (tmp_path / "events").read_text()


def test_outside_a_job_a_file_that_does_not_exist_is_an_error(
    jobs: Path, capsys: pytest.CaptureFixture[str], words: Words
) -> None:
    assert call("build", "--settings", str(jobs / "typo.settings")) == 2
    error = capsys.readouterr().err
    assert "error: " in error and f"`{jobs}/typo.settings`" in error
    words("build", error.replace(str(jobs), "JOBS"))
    assert "hint: `provision job build`" in error


def test_a_submitted_job_leaves_the_file_of_a_script_that_waits(store: Store, jobs: Path) -> None:
    waiting, submitted = job_with(SETTINGS, jobs), job_with(SETTINGS, jobs, submitted=True)
    keep_settings(waiting)
    keep_settings(submitted)
    with settings_from(Path(str(submitted.settings_file))):
        pass
    assert [str(path) for path in jobs.iterdir()] == [waiting.settings_file]


@pytest.mark.parametrize("what", ["owner", "fifo", "link", "readable", "damaged", "folder", "list"])
def test_a_file_that_is_not_ours_alone_or_damaged_is_refused(what: str, jobs: Path, words: Words) -> None:
    path, real = jobs / "x.settings", jobs / "real"
    if what == "owner" and os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    write_settings(real, SETTINGS)
    match what:
        case "fifo":
            os.mkfifo(path, 0o600)
        case "folder":
            path.mkdir(0o700)
        case "link":
            path.symlink_to(real)
        case _:
            real.rename(path)
    if what == "owner":
        os.chown(path, 12345, 12345)
    elif what == "readable":
        path.chmod(0o640)
    elif what in ("damaged", "list"):
        path.write_text("" if what == "damaged" else "[]")
    with pytest.raises(ConfigError) as caught:
        read_settings(path)
    assert str(path) in caught.value.message
    words("build", caught.value.message.replace(str(jobs), "JOBS"))
    assert "provision build --submit" in str(caught.value.hint)


def test_no_other_variable_is_taken_from_the_file(jobs: Path) -> None:
    path = jobs / "x.settings"
    path.touch(0o600)
    path.write_text(
        json.dumps({"job": None, "environ": {"LD_PRELOAD": "/x.so", "PIP_TARGET": "/y", "https_proxy": "z"}})
    )
    assert read_settings(path) == (None, {"https_proxy": "z"})


def scheduler(monkeypatch: pytest.MonkeyPatch, folder: Path, sbatch: str, state: str | None) -> None:
    """A Slurm whose sbatch does this, that knows one state of every job (None: it knows none), and whose queue is empty."""
    (folder / "bin").mkdir()
    for name, code in (("sbatch", sbatch), ("squeue", "cat queue 2>/dev/null || true")):
        program = folder / "bin" / name
        program.write_text(f"#!/bin/sh\ncd {folder}\n{code}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setattr(
        submission, "status", lambda job, name: JobStatus(job=job, state=state) if state is not None else None
    )


@pytest.mark.parametrize(
    ("state", "left"), [("PENDING", True), ("RUNNING", True), ("CANCELLED", False), ("TIMEOUT", False), (None, False)]
)
def test_what_an_ended_job_left_is_removed(
    store: Store, jobs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str | None, left: bool
) -> None:
    job = job_with(SETTINGS, jobs)
    scheduler(monkeypatch, tmp_path, "echo 42", state)
    assert submit(job, store) == "42"
    assert read_settings(Path(str(job.settings_file))) == ("42", SETTINGS)
    write_settings(jobs / "not-submitted.settings", SETTINGS)
    remove_left_settings(store, "slurm")
    assert Path(str(job.settings_file)).exists() is left
    assert (jobs / "not-submitted.settings").exists()


@pytest.mark.parametrize("end", ["cancelled", "killed"])
def test_what_a_script_left_that_a_user_submitted_is_removed_when_none_waits(
    end: str, store: Store, jobs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_with(SETTINGS, jobs)
    keep_settings(job)
    path = Path(str(job.settings_file))
    for name, value in IN_JOB.items():
        monkeypatch.setenv(name, value)
    with contextlib.suppress(KeyboardInterrupt), settings_from(path):
        if end == "cancelled":
            raise KeyboardInterrupt
        shutil.copy2(path, jobs / "copy")
    if end == "killed":  # before it could remove the file
        (jobs / "copy").rename(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_settings(path) == ("42", SETTINGS)
    scheduler(monkeypatch, tmp_path, "exit 1", "RUNNING")
    remove_left_settings(store, "slurm")
    assert path.exists(), "its job runs"
    monkeypatch.setattr(submission, "status", lambda job, name: None)
    (tmp_path / "queue").write_text("43\n")
    remove_left_settings(store, "slurm")
    assert path.exists(), "the script was submitted a second time"
    (tmp_path / "queue").unlink()
    remove_left_settings(store, "slurm")
    assert not path.exists()


@pytest.mark.parametrize(("days", "queue", "left"), [(29, "", True), (31, "", False), (31, "43\n", True)])
def test_the_file_of_a_script_that_was_never_submitted_is_removed_in_the_end(
    days: int, queue: str, left: bool, store: Store, jobs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_with(SETTINGS, jobs)
    keep_settings(job)
    path = Path(str(job.settings_file))
    then = time.time() - days * 86400
    os.utime(path, (then, then))
    scheduler(monkeypatch, tmp_path, "exit 1", None)
    (tmp_path / "queue").write_text(queue)
    remove_left_settings(store, "slurm")
    assert path.exists() is left


def test_no_file_is_removed_if_the_scheduler_does_not_say_what_waits(
    store: Store, jobs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_settings(jobs / "x.settings", SETTINGS, "42")
    scheduler(monkeypatch, tmp_path, "exit 1", None)
    (tmp_path / "bin/squeue").write_text("#!/bin/sh\nexit 1\n")
    remove_left_settings(store, "slurm")
    assert (jobs / "x.settings").exists()


@pytest.mark.parametrize("whose", ["build", "user"])
def test_only_the_job_of_a_user_gets_the_secrets_of_the_shell(
    whose: str, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler(monkeypatch, tmp_path, "env >environ; echo 42", None)
    monkeypatch.chdir(tmp_path)
    for name, value in {**SETTINGS, "WANDB_API_KEY": "Kanarie7fugl"}.items():
        monkeypatch.setenv(name, value)
    if whose == "build":
        submit(job_with(SETTINGS, store.jobs), store)
    else:
        submission.submit_script("#!/bin/sh\n", "train", "slurm")
    names = {line.partition("=")[0] for line in (tmp_path / "environ").read_text().splitlines()}
    assert ("WANDB_API_KEY" in names) is (whose == "user")
    assert names >= SETTINGS.keys()  # a job that starts again after its file was removed uses them


@pytest.mark.parametrize("sbatch", ["rm {}; echo 42", "echo no >&2; exit 1"])
def test_a_job_that_ended_at_once_or_is_refused_leaves_no_file(
    sbatch: str, store: Store, jobs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_with(SETTINGS, jobs)
    scheduler(monkeypatch, tmp_path, sbatch.format(job.settings_file), None)
    with contextlib.nullcontext() if "42" in sbatch else pytest.raises(JobError, match="refused the job"):
        submit(job, store)
    assert [path.suffix for path in jobs.iterdir()] == [".sh"]
