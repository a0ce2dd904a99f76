"""The inspection of a build for GPUs: what is expected, and the check that fails for each fault."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from golden_files import Words
from provision.model.operation import Expectation, ExpectedGpu
from provision.proof.inspection import judge_inspection, nccl_version

EXPECTED = Expectation(
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
    checks = judge_inspection(report, EXPECTED, resolve=lambda path: path)
    names = {"TensorFlow with CUDA", "NCCL built in", "linked NCCL", "device code", "driver"}
    return {check.name: (check.passed, check.message) for check in checks if check.name in names}


def test_a_good_gpu_build_passes_without_a_driver(words: Words) -> None:
    checks = gpu_checks(good_gpu_report())
    assert len(checks) == 5
    assert all(passed for passed, _ in checks.values()), checks
    assert checks["NCCL built in"][1].count("2.22.3") == 2 and checks["device code"][1].count("80 90") == 2
    words("test", f"{checks['NCCL built in'][1]}\n{checks['device code'][1]}")
    assert "libcuda.so.1" in checks["driver"][1]


def build_without_nccl(report: dict[str, Any]) -> None:
    report["horovod"]["flags"]["nccl_built"] = 0


def build_with_another_nccl(report: dict[str, Any]) -> None:
    report["horovod"]["flags"]["nccl_built"] = 21805


def load_nccl_of_a_wheel(report: dict[str, Any]) -> None:
    report["mapped_objects"] = ["/site/root/envs/x/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2"]


def omit_a_capability(report: dict[str, Any]) -> None:
    report["horovod"]["device_code"] = ["80"]


def use_tensorflow_without_cuda(report: dict[str, Any]) -> None:
    report["tensorflow"]["built_with_cuda"] = False


def use_tensorflow_with_another_cuda(report: dict[str, Any]) -> None:
    report["tensorflow"]["build_info"]["cuda_version"] = "11.8"


@pytest.mark.parametrize(
    ("fault", "name"),
    [
        (build_without_nccl, "NCCL built in"),
        (build_with_another_nccl, "NCCL built in"),
        (load_nccl_of_a_wheel, "linked NCCL"),
        (omit_a_capability, "device code"),
        (use_tensorflow_without_cuda, "TensorFlow with CUDA"),
        (use_tensorflow_with_another_cuda, "TensorFlow with CUDA"),
    ],
)
def test_a_fault_of_a_gpu_build_fails_the_check_that_names_it(
    fault: Callable[[dict[str, Any]], None], name: str
) -> None:
    report = good_gpu_report()
    fault(report)
    assert [check for check, (passed, _) in gpu_checks(report).items() if not passed] == [name]


def test_device_code_without_cuobjdump_passes_as_not_inspected(words: Words) -> None:
    passed, message = gpu_checks(good_gpu_report(device_code=None))["device code"]
    assert passed and "`cuobjdump`" in message
    words("test", message)
    report = good_gpu_report(device_code=None)
    report["errors"]["device_code"] = "CalledProcessError: no"
    assert not gpu_checks(report)["device code"][0]
