"""CUDA's versions and the GPUs for which they compile, and whether a framework's GPU wheel can use the GPUs of an arch."""

from __future__ import annotations

from collections.abc import Sequence

from provision.knowledge.frameworks.interface import FrameworkInterface
from provision.knowledge.versions import release

# From each version of CUDA on: the oldest and the newest compute capability for which it compiles, as Spack spells them.
# Source: `build_systems/cuda.py` of spack-packages (1d335f8); NVIDIA's release notes of 11.8 for 90.
CAPABILITIES = (
    *(("10.0", 30, 75), ("11.0", 35, 80), ("11.1", 35, 86), ("11.8", 35, 90)),
    *(("12.0", 50, 90), ("12.8", 50, 120), ("12.9", 50, 121), ("13.0", 75, 121)),
)
# A driver compiles for a GPU that is newer than the wheel. For these it takes half an hour, and fails then
# (tensorflow/tensorflow issues 97387, 103531 and 111958).
TOO_NEW = 100

# The compute capability of GPUs, by the names that schedulers give them; names that stand for two generations (`rtx6000`) are
# left out. Source: NVIDIA's list "CUDA GPU Compute Capability", read 2026-11.
CAPABILITY_OF = {
    "p100": "60",
    "v100": "70",
    "t4": "75",
    "rtx8000": "75",
    "a100": "80",
    "a30": "80",
    "a40": "86",
    "a10": "86",
    "l4": "89",
    "l40": "89",
    "l40s": "89",
    "h100": "90",
    "h200": "90",
    "gh200": "90",
}


def same_major(first: str, second: str) -> bool:
    """Whether two versions of CUDA have the same major version; if they do, their libraries can replace each other."""
    return first.split(".")[0] == second.split(".")[0]


def describe_capabilities(major: str) -> str:
    """The capabilities of all CUDAs of a major version: `5.0 to 9.0, 12.0 from 12.8 on`."""
    rows = [row for row in CAPABILITIES if same_major(row[0], major)]
    later = [f", {newest / 10} from {since} on" for since, _, newest in rows[1:]]
    return f"{rows[0][1] / 10} to {rows[0][2] / 10}{''.join(later)}"


def gpu_obstacle(
    framework: FrameworkInterface, version: str, family: str, capabilities: Sequence[str]
) -> tuple[str, bool] | None:
    """Why the GPU wheel of this version cannot use GPUs of these capabilities beside a CPU of this family, as a predicate.

    The second value is False if it may work all the same. None: nothing is known against it.
    """
    if family not in framework.gpu_families or release(version) < framework.gpu_families[family]:
        return f"has wheels for {family} that compute on CPUs only", True
    cuda = framework.cuda_of(version)
    known = [row for row in CAPABILITIES if cuda and release(row[0]) <= release(cuda)]
    if not known:
        return None
    _, of_cuda, newest = known[-1]
    of_wheel = (oldest for since, oldest in framework.oldest_capability if release(version) >= since)
    oldest = max(of_cuda, *of_wheel, 0)
    # Code for 8.0 runs on 8.9.
    unfit = [int(one) for one in capabilities if int(one) < oldest or int(one) // 10 > newest // 10]
    if not unfit:
        return None
    sure = any(one < oldest or one >= TOO_NEW for one in unfit)
    code = f"has code for GPUs of capability {oldest} to {newest} (CUDA {cuda})"
    return f"{code}, but the arch has {', '.join(map(str, unfit))}", sure
