"""Where Pythons are searched for, and which of them virtualenv no longer supports."""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from provision.machine.probes.probe import interpreter_at, outlived, own_pythons, pythons


def a_python(path: Path) -> str:
    """A link to this interpreter at `path`."""
    path.parent.mkdir(parents=True)
    path.symlink_to(sys.executable)
    return str(path)


def test_the_system_comes_first_then_pyenv_newest_first_then_the_callers_shell(tmp_path: Path) -> None:
    of_system = a_python(tmp_path / "system" / "python3.7")
    shim = a_python(tmp_path / "shims" / "python3.7")
    older = a_python(tmp_path / ".pyenv" / "versions" / "3.7.9" / "bin" / "python3.7")
    newer = a_python(tmp_path / ".pyenv" / "versions" / "3.7.16" / "bin" / "python3.7")
    a_python(tmp_path / ".pyenv" / "versions" / "3.8.1" / "bin" / "python3.8")
    elsewhere = a_python(tmp_path / "pyenv" / "versions" / "3.7.17" / "bin" / "python3.7")
    shell = {"HOME": str(tmp_path), "PYENV_ROOT": str(tmp_path / "pyenv")}
    environ = {**shell, "PATH": f"{tmp_path / 'system'}:/bin:{tmp_path / 'shims'}"}
    assert pythons("3.7", environ) == [of_system, newer, older]
    assert own_pythons("3.7", {**shell, "PATH": f"/bin:{tmp_path / 'shims'}"}) == [shim, elsewhere]
    assert pythons("3.7", {"PATH": "", "HOME": str(tmp_path / "other")}) == []


def test_only_pythons_without_a_pip_in_virtualenv_are_too_old() -> None:
    assert outlived("3.6.15")
    assert not outlived("3.13.0")
    assert not outlived("3.99.0")
    here = interpreter_at(sys.executable, {})
    assert here is not None and not here.own_venv


def test_a_pyenv_that_only_another_user_may_read_has_no_pythons(monkeypatch: pytest.MonkeyPatch) -> None:
    """`su` without `-` keeps the variables of the admin's shell."""

    def refused(path: Path, _: str) -> Iterator[Path]:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "glob", refused)
    assert own_pythons("3.11", {"PATH": "", "PYENV_ROOT": "/home/admin/.pyenv"}) == []
