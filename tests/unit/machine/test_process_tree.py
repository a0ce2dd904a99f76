"""The processes of a killed builder are found by a variable of their environment, however young they are."""

from __future__ import annotations

import os
import subprocess

import pytest

from provision.machine.programs.process_tree import marked_processes


def test_a_program_that_has_just_been_started_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel lets the parent go on before it has written the environment: one look in ten comes too early."""
    missed = 0
    for _ in range(300):
        with subprocess.Popen(["sleep", "60"], env={"PROVISION_TEST_MARK": "young"}) as process:
            with monkeypatch.context() as quick:  # the other processes are not looked at first
                quick.setattr(os, "listdir", lambda _, pid=process.pid: [str(pid)])
                missed += process.pid not in marked_processes("PROVISION_TEST_MARK", "young")
            process.kill()
    assert missed == 0


def test_a_program_without_an_environment_is_not_waited_for() -> None:
    with subprocess.Popen(["sleep", "60"], env={}) as process:
        assert process.pid not in marked_processes("PROVISION_TEST_MARK")
        process.kill()
