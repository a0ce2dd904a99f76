"""The inspection of a build for GPUs: what is expected, and the check that fails for each fault."""

from __future__ import annotations

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
