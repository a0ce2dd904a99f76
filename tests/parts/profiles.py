"""The shipped profiles of real sites, with the blanks of the generic one filled in as a reader of it would."""

from __future__ import annotations

import copy
import functools
import sys
from pathlib import Path
from typing import Any

from provision.machine.configuration import shipped
from provision.profile.site import Site, read_site

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # noqa: F401  (for tests that read TOML)

SITES = Path(__file__).resolve().parents[2] / "sites"
OURS = ("local", "example-slurm")
PROFILES = tuple(sorted(path.stem for path in SITES.glob("*.toml") if path.stem not in OURS))

# What a site's admin would put for each blank of `generic-slurm`.
FILLED: dict[str, Any] = {
    "root": "/shared/provision",
    "modules.init": "/usr/share/lmod/lmod/init/bash",
    "modules.path": ["/apps/modulefiles"],
    "scheduler.memory": "per-node",
    "scheduler.required": ["partition"],
    "network.compute": "proxy",
    "network.proxy": "http://proxy.example:3128",
    "files.scratch": "/scratch/$USER",
    "container.command": "apptainer",
    "container.image": "docker://tensorflow/tensorflow:2.15.0-gpu",
    "archs.cpu.target": "zen3",
    "archs.cpu.modules": ["gcc/12.2.0", "openmpi/4.1.6", "python/3.11.2", "cmake/3.27.4"],
    "archs.cpu.mpi.family": "openmpi",
    "archs.cpu.launcher.options": ["--mpi=pmix"],
    "archs.cpu.job.partition": "normal",
    "archs.cpu.job.constraint": "zen3",
    "archs.cpu.job.account": "staff",
    "archs.cpu.job.qos": "normal",
    "archs.cpu.job.time": "00:30:00",
    "archs.cpu.job.memory": "4G",
    "archs.cpu.job.exclusive": False,
    "archs.cpu.node.sockets": 2,
    "archs.cpu.node.cores": 64,
    "archs.cpu.node.threads": 128,
    "archs.cpu.node.memory_gb": 256,
    "archs.gpu.target": "zen3",
    "archs.gpu.modules": ["gcc/12.2.0", "openmpi/4.1.6", "cuda/12.2.2", "nccl/2.18.3", "python/3.11.2", "cmake/3.27.4"],
    "archs.gpu.mpi.family": "openmpi",
    "archs.gpu.launcher.options": ["--mpi=pmix"],
    "archs.gpu.job.partition": "gpu",
    "archs.gpu.job.constraint": "a100",
    "archs.gpu.job.account": "staff",
    "archs.gpu.job.qos": "normal",
    "archs.gpu.job.time": "00:30:00",
    "archs.gpu.job.memory": "4G",
    "archs.gpu.job.exclusive": False,
    "archs.gpu.node.sockets": 2,
    "archs.gpu.node.cores": 64,
    "archs.gpu.node.threads": 64,
    "archs.gpu.node.memory_gb": 512,
    "archs.gpu.gpu.per_node": 4,
    "archs.gpu.gpu.capabilities": ["80"],
    "archs.gpu.gpu.nccl_home": "${NCCL_ROOT}",
    "archs.gpu.proof.ranks_per_node": 4,
}


def parsed(name: str) -> dict[str, Any]:
    """A profile as TOML, with what it extends."""
    return copy.deepcopy(dict(shipped.load_profile(str(SITES / f"{name}.toml"))[0]))


@functools.cache
def profile(name: str) -> Site:
    """The site of a profile, whole, below a root that no machine has."""
    data = parsed(name)
    if name == "generic-slurm":
        for path, value in FILLED.items():
            table: Any = data
            *folders, last = path.split(".")
            for folder in folders:
                table = table[folder]
            assert table[last] in ("?", ["?"]), f"{path} is not a blank any more"
            table[last] = value
    return read_site(data, f"sites/{name}.toml", {"PROVISION_ROOT": "/site/root"}, name)


ARCHS = tuple((name, arch) for name in PROFILES for arch in parsed(name)["archs"])
