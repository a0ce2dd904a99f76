"""The record names the library that does TensorFlow's mathematics on CPUs, wherever this TensorFlow tells it.

TensorFlow itself is a stand-in here, a package with nothing but the answer: the real ones are in the integration tests.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import provision
from provision.model.plan import Expectation
from provision.proof.inspection import judge_inspection

PROGRAMS = Path(provision.__file__).parent / "proof" / "programs"
PLACES = {
    "2.21": "tensorflow/python/util/_pywrap_util_port.py",
    "2.2": "tensorflow/python/_pywrap_util_port.py",
    "1.15": "tensorflow/python/pywrap_tensorflow.py",
}
EXPECTED = Expectation(versions=(("tensorflow", "2.15.1"),), mpi_libraries=(), allowed=())


def asked(folder: Path, place: str, answer: str, **environ: str) -> dict[str, Any]:
    """What the inspection finds of a TensorFlow that answers so at this place."""
    path = folder / place
    for one in (path.parent, *path.parent.relative_to(folder).parents):
        (folder / one).mkdir(parents=True, exist_ok=True)
    path.write_text(f"import os\ndef IsMklEnabled():\n    return {answer}\n")
    program = f"import sys, json; sys.path[:0] = [{str(PROGRAMS)!r}, {str(folder)!r}]; import inspect_env, tensorflow; "
    program += "print(json.dumps(inspect_env.math_backend(tensorflow)))"
    done = subprocess.run(
        [sys.executable, "-B", "-c", program], capture_output=True, text=True, check=True, env=environ
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def message(**report: Any) -> str:
    """What the record says."""
    checks = judge_inspection(report, EXPECTED, resolve=lambda path: path)
    (found,) = [check for check in checks if check.name == "math backend"]
    assert found.passed, "either is right"
    return found.message


@pytest.mark.parametrize("version", PLACES)
def test_tensorflow_is_asked_where_this_version_answers(version: str, tmp_path: Path) -> None:
    assert asked(tmp_path, PLACES[version], "True")["backend"] == "oneDNN"
    assert asked(tmp_path, PLACES[version], "False")["backend"] == "Eigen"


def test_the_record_says_which_and_why(tmp_path: Path) -> None:
    answer = "os.environ.get('TF_ENABLE_ONEDNN_OPTS') != '0'"
    assert message(math=asked(tmp_path, PLACES["2.21"], answer)) == "oneDNN on CPUs, left to TensorFlow"
    told = asked(tmp_path, PLACES["2.21"], answer, TF_ENABLE_ONEDNN_OPTS="0")
    assert message(math=told) == "Eigen on CPUs, TF_ENABLE_ONEDNN_OPTS=0"


def test_a_tensorflow_that_does_not_answer_is_told_as_that() -> None:
    assert message(math=None, errors={"math": "ImportError: no"}) == "not known: ImportError: no"
    assert message() == "not known: nobody asked"
