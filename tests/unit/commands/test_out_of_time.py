"""Signals of the scheduler: a build ends once, and starts its job again before its time is over."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from golden_files import Words, slurm_site
from provision.commands.build import MOST_RESTARTS, watched_time
from provision.errors import Interruption


@pytest.fixture
def scontrol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in of Slurm's program in job 42, which writes its arguments to the file that is returned, and can refuse."""
    program, log = tmp_path / "bin" / "scontrol", tmp_path / "called"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\necho "$@" >>{log}\n[ ! -e {tmp_path}/refuse ] || {{ echo "Job is held" >&2; exit 1; }}\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_JOB_ID", "42")
    monkeypatch.setenv("SLURMD_NODENAME", "n1")
    return log


def announced() -> Interruption:
    """The error of a build that Slurm signals before the time limit of its job."""
    with pytest.raises(Interruption) as caught, watched_time(slurm_site()):
        signal.raise_signal(signal.SIGUSR1)
    return caught.value


def test_a_job_that_is_nearly_out_of_time_goes_back_into_the_queue(scontrol: Path, words: Words) -> None:
    error = announced()
    assert scontrol.read_text() == "requeue 42\n"
    assert "job 42" in error.message
    words("build", "\n".join(error.to_lines()))
    assert error.exit_code == 130


def test_a_job_that_was_started_again_often_does_not_do_so_for_ever(
    scontrol: Path, monkeypatch: pytest.MonkeyPatch, words: Words
) -> None:
    monkeypatch.setenv("SLURM_RESTART_COUNT", str(MOST_RESTARTS))
    error = announced()
    assert not scontrol.exists()
    assert str(MOST_RESTARTS) in error.message
    assert "raise `job.time`" in str(error.hint)
    words("build", "\n".join(error.to_lines()))


def test_what_slurm_says_if_it_does_not_start_the_job_again_is_shown(scontrol: Path, words: Words) -> None:
    (scontrol.parent / "refuse").touch()
    error = announced()
    words("build", "\n".join(error.to_lines()))
    assert error.evidence == ("Job is held",)


def test_a_second_signal_does_not_interrupt_what_tidies_up() -> None:
    program = """
import os, signal, sys, time
from provision.commands.shared import running
for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, running._terminated)
try:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)
except running.Terminated:
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGTERM):
        os.kill(os.getpid(), number)
        time.sleep(0.01)
    print("tidied up")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "tidied up\n"
