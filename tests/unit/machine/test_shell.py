"""What the shell gave to this process: the default site, the width of the terminal, paths, PATH, the umask."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from provision.machine.programs.shell import columns, set_umask


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


@pytest.mark.parametrize("umask", [0o077, 0o000, 0o002])
def test_all_users_read_and_only_the_owner_writes_whatever_the_umask_was(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        set_umask()
        (tmp_path / "new").touch()
        assert (tmp_path / "new").stat().st_mode & 0o777 == 0o644
    finally:
        os.umask(before)
