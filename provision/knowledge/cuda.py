"""The CUDA version that each GPU wheel of TensorFlow is built with, the GPUs that it knows, and packages without GPU support.

Source: `cuda_version` in the wheels' own `tf.sysconfig.get_build_info()` for 2.15.1 (12.2), 2.18.1 and 2.21.0 (12.5.1),
read on 2026-11-21; for the others the table "Tested build configurations, GPU, Linux" of TensorFlow's installation page
(`site/en/install/source.md`, 2026-03-11). For a version that is not in this table nothing is checked.
"""

from __future__ import annotations

from collections.abc import Sequence

from provision.knowledge.versions import release

CUDA_OF_TENSORFLOW = {
    "1.15": "10.0",
    "2.0": "10.0",
    **dict.fromkeys(("2.1", "2.2", "2.3"), "10.1"),
    "2.4": "11.0",
    **dict.fromkeys(("2.5", "2.6", "2.7", "2.8", "2.9", "2.10", "2.11"), "11.2"),
    **dict.fromkeys(("2.12", "2.13", "2.14"), "11.8"),
    "2.15": "12.2",
    **dict.fromkeys(("2.16", "2.17"), "12.3"),
    **dict.fromkeys(("2.18", "2.19", "2.20", "2.21"), "12.5"),
}

# From each version of CUDA on: the oldest and the newest compute capability for which it compiles, as Spack spells them.
# Source: `build_systems/cuda.py` of spack-packages (1d335f8); NVIDIA's release notes of 11.8 for 90.
CAPABILITIES = (
    *(("10.0", 30, 75), ("11.0", 35, 80), ("11.1", 35, 86), ("11.8", 35, 90)),
    *(("12.0", 50, 90), ("12.8", 50, 120), ("12.9", 50, 121), ("13.0", 75, 121)),
)
# From TensorFlow 2.17 on, the wheels have no code for older GPUs (the announcement of 2.17).
SINCE, OLDEST = (2, 17), 60
# A driver compiles for a GPU that is newer than the wheel. For these it takes half an hour, and fails then
# (tensorflow/tensorflow issues 97387, 103531 and 111958).
TOO_NEW = 100
# The wheels for other CPUs compute on CPUs only (tensorflow/tensorflow issue 121157).
GPU_FAMILY = "x86_64"

# Wheels without kernels for GPUs: they never use a GPU, and a Horovod that is built for GPUs cannot be loaded together
# with them (`undefined symbol: …DenseUpdate<Eigen::GpuDevice, …>`).
CPU_PACKAGES = frozenset({"tensorflow-cpu", "intel-tensorflow", "intel-tensorflow-avx512"})


def cuda_of(tensorflow: str) -> str | None:
    """The CUDA version that the GPU wheel of this TensorFlow is built with; None if it is not known."""
    return CUDA_OF_TENSORFLOW.get(".".join(tensorflow.split(".")[:2]))


def same_major(first: str, second: str) -> bool:
    """Whether two versions of CUDA have the same major version; if they do, their libraries can replace each other."""
    return first.split(".")[0] == second.split(".")[0]


def capabilities_of(cuda: str) -> tuple[int, int] | None:
    """The oldest and the newest compute capability for which this CUDA compiles; None if that is not known."""
    known = [(oldest, newest) for since, oldest, newest in CAPABILITIES if release(since) <= release(cuda)]
    return known[-1] if known else None


def describe_capabilities(major: str) -> str:
    """The capabilities of all CUDAs of a major version: `5.0 to 9.0, 12.0 from 12.8 on`."""
    rows = [row for row in CAPABILITIES if same_major(row[0], major)]
    later = [f", {newest / 10} from {since} on" for since, _, newest in rows[1:]]
    return f"{rows[0][1] / 10} to {rows[0][2] / 10}{''.join(later)}"


def gpu_obstacle(tensorflow: str, family: str, capabilities: Sequence[str]) -> tuple[str, bool] | None:
    """Why the GPU wheel of this TensorFlow cannot use GPUs of these capabilities beside a CPU of this family, as a predicate.

    The second value is False if it may work all the same. None: nothing is known against it.
    """
    if family != GPU_FAMILY:
        return f"has wheels for {family} that compute on CPUs only", True
    cuda = cuda_of(tensorflow)
    span = capabilities_of(cuda) if cuda else None
    if span is None:
        return None
    oldest, newest = max(span[0], OLDEST if release(tensorflow) >= SINCE else 0), span[1]
    # Code for 8.0 runs on 8.9.
    unfit = [int(one) for one in capabilities if int(one) < oldest or int(one) // 10 > newest // 10]
    if not unfit:
        return None
    sure = any(one < oldest or one >= TOO_NEW for one in unfit)
    code = f"has code for GPUs of capability {oldest} to {newest} (CUDA {cuda})"
    return f"{code}, but the arch has {', '.join(map(str, unfit))}", sure
