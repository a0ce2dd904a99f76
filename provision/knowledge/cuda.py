"""The CUDA version that each GPU wheel of TensorFlow is built with, and the packages that have no GPU support.

Source: `cuda_version` in the wheels' own `tf.sysconfig.get_build_info()` for 2.15.1 (12.2), 2.18.1 and 2.21.0 (12.5.1),
read on 2026-11-21; for the others the table "Tested build configurations, GPU, Linux" of TensorFlow's installation page
(`site/en/install/source.md`, 2026-03-11). For a version that is not in this table nothing is checked.
"""

from __future__ import annotations

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

# Wheels without kernels for GPUs: they never use a GPU, and a Horovod that is built for GPUs cannot be loaded together
# with them (`undefined symbol: …DenseUpdate<Eigen::GpuDevice, …>`).
CPU_PACKAGES = frozenset({"tensorflow-cpu", "intel-tensorflow", "intel-tensorflow-avx512"})


def cuda_of(tensorflow: str) -> str | None:
    """The CUDA version that the GPU wheel of this TensorFlow is built with; None if it is not known."""
    return CUDA_OF_TENSORFLOW.get(".".join(tensorflow.split(".")[:2]))


def same_major(first: str, second: str) -> bool:
    """Whether two versions of CUDA have the same major version; if they do, their libraries can replace each other."""
    return first.split(".")[0] == second.split(".")[0]
