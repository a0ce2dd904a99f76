"""Session fixtures of the real parts; `conftest.py` takes them in with `pytest_plugins = ["parts.fixtures"]`."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from parts.disks import mounted
from parts.hosts import why_not
from parts.modules import CACHE as TEST_CACHE
from parts.modules import ModuleTree, build_module_tree
from parts.paths import REPOSITORY
from parts.slurm import NodeGroup, Partition, SlurmCluster
from parts.spack import MISSING, RealSpack, find_spack
from parts.sshd import LoginNode, login_node
from parts.sshd import missing_programs as missing_for_ssh
from provision.machine.probes.probe_gpu import parse_nvcc_version, toolkit_of

# Of the environment, before `conftest.py` takes all settings of ours out of it.
CUDA = os.environ.get("PROVISION_TEST_CUDA")
NCCL = os.environ.get("PROVISION_TEST_NCCL")
CXX = os.environ.get("PROVISION_TEST_CXX")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB."""
    yield from mounted(tmp_path / "disk", "size=1m")


@pytest.fixture
def site_by_ssh(tmp_path: Path) -> Iterator[LoginNode]:
    """A login node that this machine reaches by ssh."""
    if reason := missing_for_ssh():
        pytest.skip(f"there is no OpenSSH server or rsync here, {reason}")
    with login_node(tmp_path / "login-node") as node:
        yield node


# What a root keeps for all its environments, by key or hash.
SHARED = ("cache/sources", "cache/wheelhouse", "cache/data", "wheels")
# What makes a wheel of Horovod: its key has the flags and patches, not how the recipe starts the compiler.
MAKES_WHEELS = ("provision/horovod", "provision/backends", "provision/machine/install", "patches", "requirements")


@pytest.fixture(scope="session")
def slurm_cluster() -> Iterator[SlurmCluster]:
    """One cluster for all tests: nodes `knl[1-2]` and `hsw[1-2]`, partitions `knl` and `haswell`."""
    with SlurmCluster() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def cluster_of_hosts() -> Iterator[SlurmCluster]:
    """A cluster of two nodes, `knl[1-2]`, which are hosts of their own."""
    if reason := why_not():
        pytest.skip(f"there can be no hosts with networks of their own here: {reason}")
    groups = (NodeGroup(name="knl", features=("knl",)),)
    with SlurmCluster(node_groups=groups, partitions=(Partition(name="knl", groups=("knl",)),), networks=True) as one:
        yield one


@pytest.fixture(scope="session")
def module_tree(tmp_path_factory: pytest.TempPathFactory) -> ModuleTree:
    """One tree of site modules for all tests: gcc, MPICH, Open MPI, Pythons; no test writes into it."""
    return build_module_tree(tmp_path_factory.mktemp("site"), pythons=("3.11", "3.10", "3.7", "3.6"))


@pytest.fixture(scope="session")
def spack() -> RealSpack:
    """The Spack of this machine."""
    found = find_spack()
    if found is None:
        pytest.skip(MISSING)
    return found


@pytest.fixture(scope="session")
def cuda() -> tuple[str, str]:
    """The CUDA toolkit's folder and version: `PROVISION_TEST_CUDA`, else the one that the nvcc on PATH belongs to."""
    on_path = shutil.which("nvcc")
    home = CUDA or (toolkit_of(on_path, os.environ) if on_path else None)
    if home is None:
        pytest.skip("there is no nvcc: none on PATH, and PROVISION_TEST_CUDA names no CUDA toolkit")
    if any(Path("/dev").glob("nvidia[0-9]*")):
        pytest.skip("there is a GPU here, and these tests are about a machine without one")
    output = subprocess.run([f"{home}/bin/nvcc", "--version"], capture_output=True, text=True, check=True).stdout
    version = parse_nvcc_version(output)
    assert version is not None, output
    return home, version


@pytest.fixture(scope="session")
def nccl(cuda: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with NCCL for that CUDA: `PROVISION_TEST_NCCL`, else a wheel, which has no `libnccl.so` for the linker."""
    if NCCL:
        return NCCL
    package, folder = f"nvidia-nccl-cu{cuda[1].split('.')[0]}", tmp_path_factory.mktemp("nccl")
    argv = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-input", "--target", str(folder), package]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"{package} cannot be had: {done.stderr.splitlines()[-1]}")
    return str(folder / "nvidia" / "nccl")


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the downloads and compiled wheels that several roots share, by `share`.

    They stay in the user's cache: what is downloaded, by its hash; what is compiled, as long as no source of it changes.
    """
    digest = hashlib.sha256()
    for path in sorted(path for name in MAKES_WHEELS for path in (REPOSITORY / name).rglob("*.*")):
        if path.is_file() and path.suffix != ".pyc":
            digest.update(path.read_bytes())
    folder, kept = tmp_path_factory.mktemp("shared"), TEST_CACHE / "roots"
    for name in SHARED:
        place = kept / (f"wheels-{digest.hexdigest()[:12]}" if name == "wheels" else name)
        place.mkdir(parents=True, exist_ok=True)
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).symlink_to(place)
    return folder


def share(root: Path, shared: Path) -> dict[str, str]:
    """Make a root whose downloads and wheels are the shared ones; what is compiled alike is compiled once.

    Returns variables for who installs what was fetched: uv keeps what it unpacks by the path of the wheelhouse, which is
    another one each time, and would fill the user's own cache with gigabytes that are never used again.
    """
    for name in SHARED:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to((shared / name).resolve())
    return {"UV_CACHE_DIR": str(shared / "uv")}
