"""Failures that real programs of this machine really have: what they print is explained as the entry of the catalogue says.

Each script in `failures_reproduced.toml` runs in an empty folder. Nothing is installed, compiled for long or downloaded.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from provision.machine.programs.failed_program import explain_log, known_failures

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = pytest.mark.real

HERE = Path(__file__).parent
ROWS = tomllib.loads((HERE / "failures_reproduced.toml").read_text(encoding="utf-8"))["failure"]
# The programs of the tool's own environment come first.
SEARCHED = f"{Path(sys.executable).parent}:{os.environ['PATH']}"


def is_here(program: str) -> bool:
    """Whether a program, or a file, is on this machine."""
    return Path(program).exists() if program.startswith("/") else shutil.which(program, path=SEARCHED) is not None


@pytest.mark.parametrize("row", ROWS, ids=[f"{number}-{row['id']}" for number, row in enumerate(ROWS)])
def test_a_real_failure_is_explained(row: dict[str, str], tmp_path: Path) -> None:
    program = row.get("needs", "bash")
    if not is_here(program):
        pytest.skip(f"`{program}` is not installed here")
    environ = {
        "PATH": SEARCHED,
        "HOME": str(tmp_path),
        "PYTHON": sys.executable,
        "TESTS": str(HERE.parent),
        "PYTHONPATH": str(HERE.parents[1]),
        "TMPDIR": str(tmp_path),
        "LC_ALL": "C.UTF-8",
    }
    folder = tmp_path / "work"
    folder.mkdir()
    done = subprocess.run(
        ["bash", "-c", row["script"].strip()],
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=60,
        check=False,
    )
    found = explain_log([done.stdout])
    assert found.verdict != "healthy" and found.findings, done.stdout.decode()
    assert found.findings[0].entry.id == row["id"], (found.findings[0].entry.id, done.stdout.decode())


def test_at_least_25_entries_of_the_catalogue_are_reproduced() -> None:
    entries = {row["id"] for row in ROWS} & set(known_failures().names)
    assert len(entries) >= 25
