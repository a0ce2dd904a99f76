"""`tools/setup`, which `make` starts, makes .venv again, also from a shell that uses it; an installation is whole."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[3]


def test_nothing_of_the_package_is_ignored() -> None:
    """The wheel leaves out what `.gitignore` names: a rule for `build/` left `machine/build` out of each installation."""
    names = ["git", "ls-files", "--cached", "--ignored", "--exclude-per-directory=.gitignore", "--", "."]
    done = subprocess.run(names, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("this is no checkout of git")
    assert done.stdout.splitlines() == []


@pytest.mark.real
def test_a_shell_that_uses_the_environment_can_make_it_again(tmp_path: Path) -> None:
    """Its `python3` is in the folder that is removed first; without an index the installation ends there."""
    (tmp_path / "tools").mkdir()
    shutil.copy(CHECKOUT / "tools" / "setup", tmp_path / "tools" / "setup")
    shutil.copy(CHECKOUT / "pyproject.toml", tmp_path)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", ".venv"], cwd=tmp_path, check=True)
    # As on Python 3.10, which believes that the Python of an environment is the one that made it.
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys._base_executable = sys.executable\n")
    path = f"{tmp_path}/.venv/bin:{os.environ['PATH']}"
    environ = {**os.environ, "PATH": path, "PIP_NO_INDEX": "1", "PYTHON": "python3", "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        ["bash", "tools/setup", "dev"], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )
    assert "No such file" not in done.stderr, done.stderr
    assert (tmp_path / ".venv" / "bin" / "pip").exists(), done.stderr
