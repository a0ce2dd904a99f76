"""The inspection of an environment: its Horovod, its build for GPUs, its library on CPUs, and files that are not its own."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import provision
from golden_files import Words
from provision.knowledge.frameworks.interface import MathLibrary
from provision.model.check import Check
from provision.model.operation import Expectation, ExpectedGpu
from provision.proof.inspection import judge_inspection, nccl_version

PROGRAM = Path(provision.__file__).parent / "proof/programs/inspect_env.py"
TENSORFLOW = """
import sys, types
__version__ = "2.15.1"
sys.modules["numpy"] = types.SimpleNamespace(__version__="1")
"""
EXPECTED = Expectation(
    framework="tensorflow", versions=(("tensorflow", "2.15.1"), ("horovod", "0.28.1")), mpi_libraries=(), allowed=("/",)
)


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


# A build for GPUs


GPU_BUILD = Expectation(
    framework="tensorflow",
    versions=(("tensorflow", "2.15.1"), ("horovod", "0.28.1"), ("python", "3.11.7")),
    mpi_libraries=("/site/mpich/lib/libmpi.so",),
    allowed=("/site",),
    gpu=ExpectedGpu(
        capabilities=("80", "90"),
        cuda_version="12.4.131",
        nccl_version="2.22.3",
        nccl_library="/site/nccl/lib/libnccl.so.2",
    ),
)


@pytest.mark.parametrize(("code", "version"), [(23203, "2.32.3"), (20800, "2.8.0"), (2708, "2.7.8"), (0, None)])
def test_the_version_code_of_nccl_is_read(code: int, version: str | None) -> None:
    assert nccl_version(code) == version


def good_gpu_report(**horovod: object) -> dict[str, Any]:
    """The report of `proof/programs/inspect_env.py` for a good GPU build on a machine without a driver."""
    return {
        "versions": {"tensorflow": "2.15.1", "horovod": "0.28.1", "python": "3.11.7"},
        "tensorflow": {"built_with_cuda": True, "build_info": {"cuda_version": "12.2"}},
        "horovod": {
            "metadata": {"tensorflow": "2.15.1"},
            "extensions": ["/x/mpi_lib.so"],
            "flags": {"mpi_built": 1, "gloo_built": 0, "nccl_built": 22203, "cuda_built": 1},
            "check_build": "[X] MPI",
            "device_code": ["80", "90"],
            **horovod,
        },
        "cuda_driver": {"serves": None, "reason": "libcuda.so.1: cannot open shared object file"},
        "mapped_objects": ["/site/nccl/lib/libnccl.so.2"],
        "errors": {},
    }


def gpu_checks(report: dict[str, Any]) -> dict[str, tuple[bool, str]]:
    """The additional checks of a GPU build, by name."""
    checks = judge_inspection(report, GPU_BUILD, resolve=lambda path: path)
    names = {"TensorFlow with CUDA", "NCCL built in", "linked NCCL", "device code", "driver"}
    return {check.name: (check.passed, check.message) for check in checks if check.name in names}


def test_a_good_gpu_build_passes_without_a_driver(words: Words) -> None:
    checks = gpu_checks(good_gpu_report())
    assert len(checks) == 5
    assert all(passed for passed, _ in checks.values()), checks
    words("test", "\n".join(message for _, message in checks.values()))


NCCL_OF_A_WHEEL = "/site/root/envs/x/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2"


@pytest.mark.parametrize(
    ("place", "value", "name"),
    [
        ("horovod/flags/nccl_built", 0, "NCCL built in"),
        ("horovod/flags/nccl_built", 21805, "NCCL built in"),
        ("mapped_objects", [NCCL_OF_A_WHEEL], "linked NCCL"),
        ("horovod/device_code", ["80"], "device code"),
        ("tensorflow/built_with_cuda", False, "TensorFlow with CUDA"),
        ("tensorflow/build_info/cuda_version", "11.8", "TensorFlow with CUDA"),
    ],
)
def test_a_fault_of_a_gpu_build_fails_the_check_that_names_it(place: str, value: object, name: str) -> None:
    report = part = good_gpu_report()
    *parts, last = place.split("/")
    for one in parts:
        part = part[one]
    part[last] = value
    assert [check for check, (passed, _) in gpu_checks(report).items() if not passed] == [name]


def test_device_code_without_cuobjdump_passes_as_not_inspected() -> None:
    report = good_gpu_report(device_code=None)
    passed, message = gpu_checks(report)["device code"]
    assert passed and "`cuobjdump`" in message
    report["errors"]["device_code"] = "CalledProcessError: no"
    assert not gpu_checks(report)["device code"][0]


# The library on CPUs: TensorFlow is a stand-in, a package with only the needed function; the real tests use real ones.


PLACES = {
    "2.21": "tensorflow/python/util/_pywrap_util_port.py",
    "2.2": "tensorflow/python/_pywrap_util_port.py",
    "1.15": "tensorflow/python/pywrap_tensorflow.py",
}
FRAMEWORK = Expectation(framework="tensorflow", versions=(("tensorflow", "2.15.1"),), mpi_libraries=(), allowed=())


def inspect(folder: Path, place: str, answer: str, **environ: str) -> dict[str, Any]:
    """The result of the inspection, with a stand-in whose file `place` has the function that returns `answer`."""
    path = folder / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"import os\ndef IsMklEnabled():\n    return {answer}\n")
    program = f"import sys, json; sys.path[:0] = [{str(PROGRAM.parent)!r}, {str(folder)!r}]; import tensorflow_rank, tensorflow; "
    program += "print(json.dumps(tensorflow_rank.math_backend(tensorflow)))"
    done = subprocess.run(
        [sys.executable, "-B", "-c", program], capture_output=True, text=True, check=True, env=environ
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def backend_check(required: MathLibrary | None = None, **report: Any) -> Check:
    """The check about the library."""
    expected = dataclasses.replace(FRAMEWORK, math=required)
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
