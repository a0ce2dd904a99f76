"""The record names the library with which TensorFlow computes on CPUs, for every TensorFlow version.

TensorFlow is a stand-in here, a package with only the needed function; the integration tests use real ones.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import provision
from golden_files import Words
from provision.knowledge.math_libraries import MathLibrary
from provision.model.operation import Expectation
from provision.model.verdict import Check
from provision.proof.inspection import judge_inspection

PROGRAMS = Path(provision.__file__).parent / "proof" / "programs"
PLACES = {
    "2.21": "tensorflow/python/util/_pywrap_util_port.py",
    "2.2": "tensorflow/python/_pywrap_util_port.py",
    "1.15": "tensorflow/python/pywrap_tensorflow.py",
}
EXPECTED = Expectation(versions=(("tensorflow", "2.15.1"),), mpi_libraries=(), allowed=())


def inspect(folder: Path, place: str, answer: str, **environ: str) -> dict[str, Any]:
    """The result of the inspection, with a stand-in whose file `place` has the function that returns `answer`."""
    path = folder / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"import os\ndef IsMklEnabled():\n    return {answer}\n")
    program = f"import sys, json; sys.path[:0] = [{str(PROGRAMS)!r}, {str(folder)!r}]; import inspect_env, tensorflow; "
    program += "print(json.dumps(inspect_env.math_backend(tensorflow)))"
    done = subprocess.run(
        [sys.executable, "-B", "-c", program], capture_output=True, text=True, check=True, env=environ
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def backend_check(required: MathLibrary | None = None, **report: Any) -> Check:
    """The check about the library."""
    expected = dataclasses.replace(EXPECTED, math=required)
    checks = judge_inspection(report, expected, resolve=lambda path: path)
    (backend,) = [check for check in checks if check.name == "math backend"]
    return backend


def backend_message(**report: Any) -> str:
    """The message of that check when none is required."""
    backend = backend_check(**report)
    assert backend.passed, "both libraries are right"
    return backend.message


@pytest.mark.parametrize("version", PLACES)
def test_the_library_is_read_from_every_version_of_tensorflow(version: str, tmp_path: Path) -> None:
    assert inspect(tmp_path, PLACES[version], "True")["backend"] == "oneDNN"
    assert inspect(tmp_path, PLACES[version], "False")["backend"] == "Eigen"


def test_the_record_names_the_library_and_the_reason(tmp_path: Path, words: Words) -> None:
    answer = "os.environ.get('TF_ENABLE_ONEDNN_OPTS') != '0'"
    message = backend_message(math=inspect(tmp_path, PLACES["2.21"], answer))
    words("test", message)
    result = inspect(tmp_path, PLACES["2.21"], answer, TF_ENABLE_ONEDNN_OPTS="0")
    assert backend_message(math=result) == "Eigen on CPUs, TF_ENABLE_ONEDNN_OPTS=0"


def test_a_tensorflow_without_the_function_is_recorded_as_unknown(words: Words) -> None:
    assert backend_message(math=None, errors={"math": "ImportError: no"}) == "not known: ImportError: no"
    words("test", backend_message())


def test_eigen_and_an_unknown_library_fail_if_onednn_is_required(words: Words) -> None:
    assert backend_check("onednn", math={"backend": "oneDNN"}).passed
    eigen = backend_check("onednn", math={"backend": "Eigen"})
    assert not eigen.passed
    words("test", eigen.message)
    assert not backend_check("onednn", math=None, errors={"math": "ImportError: no"}).passed
