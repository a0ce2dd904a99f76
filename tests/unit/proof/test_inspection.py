"""What an inspection refuses: a Horovod without its compiled part, and files that are not of the environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import provision
from provision.model.operation import Expectation
from provision.proof.inspection import judge_inspection

PROGRAM = Path(provision.__file__).parent / "proof/programs/inspect_env.py"
TENSORFLOW = """
import sys, types
__version__ = "2.15.1"
sys.modules["numpy"] = types.SimpleNamespace(__version__="1")
"""
EXPECTED = Expectation(versions=(("tensorflow", "2.15.1"), ("horovod", "0.28.1")), mpi_libraries=(), allowed=("/",))


def failed(report: dict[str, Any], links: tuple[tuple[str, str], ...] = ()) -> set[str]:
    """The names of the checks that fail."""
    return {check.name for check in judge_inspection(report, EXPECTED, os.path.realpath, links) if not check.passed}


def horovod_of(folder: Path, kind: str) -> None:
    """A package that Python imports, but whose compiled part is not there, or is not loaded."""
    inner = folder / "horovod/tensorflow"
    inner.mkdir(parents=True)
    if kind == "empty folders":
        return
    (folder / "horovod/__init__.py").write_text('__version__ = "0.28.1"\n')
    (folder / "horovod/metadata.json").write_text('{"tensorflow": "2.15.1"}')
    flags = "" if kind == "no answers" else "def mpi_built(): return True\ndef gloo_built(): return False\n"
    (inner / "__init__.py").write_text(flags)
    if kind == "a library that is not loaded":
        (inner / "mpi_lib.so").touch()
    if kind == "a link to nothing":
        (inner / "mpi_lib.so").symlink_to("/nonexistent/uv/mpi_lib.so")


@pytest.mark.parametrize(
    "kind", ["empty folders", "no answers", "no library", "a library that is not loaded", "a link to nothing"]
)
def test_a_horovod_without_its_compiled_part_does_not_pass(tmp_path: Path, kind: str) -> None:
    horovod_of(tmp_path, kind)
    (tmp_path / "tensorflow").mkdir()
    (tmp_path / "tensorflow/__init__.py").write_text(TENSORFLOW)
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, str(PROGRAM)], env=environ, capture_output=True, text=True, check=False)
    report = json.loads(done.stdout.splitlines()[-1])
    assert "framework built in" in failed(report), done.stderr


def test_a_link_that_leaves_the_environment_does_not_pass() -> None:
    assert "links" in failed({}, (("lib/python3.11/site-packages/horovod/__init__.py", "/home/ada/.cache/uv/x"),))
    assert "links" not in failed({})
