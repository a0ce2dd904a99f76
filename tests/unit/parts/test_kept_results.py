"""`--resume` and the file of seconds, in a small project of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
PROJECT = "def test_good(): pass\ndef test_bad(): assert not __import__('os').path.exists('bad')\n"


def run(folder: Path) -> str:
    """What pytest prints of the project, by a worker."""
    argv = [sys.executable, "-m", "pytest", "-p", "kept_results", "-p", "xdist", "-q", "-n", "1", "--resume"]
    environ = {"PYTHONPATH": str(TESTS), "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environ = {**os.environ, **environ, "PYTEST_ADDOPTS": ""}
    return subprocess.run(argv, cwd=folder, env=environ, capture_output=True, text=True, check=False).stdout


def test_what_passed_is_left_out_until_a_file_is_another_one(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_it.py").write_text(PROJECT)
    (tmp_path / ".gitignore").write_text("build\nbad\n")
    (tmp_path / "bad").touch()
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    assert "1 failed, 1 passed" in run(tmp_path)
    rows = (tmp_path / "build" / "tests" / "seconds.tsv").read_text().splitlines()
    assert sorted(row.split("\t")[1] for row in rows) == ["test_it.py::test_bad", "test_it.py::test_good"]
    (tmp_path / "bad").unlink()
    assert "1 passed" in run(tmp_path)
    (tmp_path / "another.py").touch()
    assert "2 passed" in run(tmp_path)
