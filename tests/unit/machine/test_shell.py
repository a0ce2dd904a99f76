"""What the shell gave to this process: the default site, the width of the terminal, paths, PATH, the umask."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from provision.machine.programs.shell import absolute, columns, default_site, expand_home, set_umask, which


def test_the_default_site_is_the_one_of_the_environment_or_local(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROVISION_SITE", "nyu-torch")
    assert default_site() == "nyu-torch"
    monkeypatch.delenv("PROVISION_SITE")
    assert default_site() == "local"


@pytest.mark.parametrize(("value", "width"), [("132", 132), ("0", 80)])
def test_columns_decides_the_width(value: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", value)
    assert columns() == width


@pytest.mark.parametrize("value", ["wide", None])
def test_without_columns_the_terminal_decides_the_width(value: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "get_terminal_size", lambda: os.terminal_size((57, 20)))
    if value is None:
        monkeypatch.delenv("COLUMNS", raising=False)
    else:
        monkeypatch.setenv("COLUMNS", value)
    assert columns() == 57


def test_a_path_starts_in_the_working_folder_or_in_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/alice")
    assert absolute("data/../train.py") == str(tmp_path / "train.py")
    assert expand_home("~/root") == "/home/alice/root"


def test_a_program_is_found_on_path_or_on_another_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "python-of-the-site"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert which("python-of-the-site") is None
    assert which("python-of-the-site", path=str(tmp_path)) == str(program)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert which("python-of-the-site") == str(program)


@pytest.mark.parametrize("umask", [0o077, 0o000, 0o002])
def test_all_users_read_and_only_the_owner_writes_whatever_the_umask_was(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        set_umask()
        (tmp_path / "new").touch()
        assert (tmp_path / "new").stat().st_mode & 0o777 == 0o644
    finally:
        os.umask(before)
