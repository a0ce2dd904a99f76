"""The examples of PyTorch and mpi4py by the jobs that we write, under a real Slurm with two hosts, on Debian's packages.

They are behind a module of the site's own, whose Python is Debian's with the folder of `.ci/install`.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from parts.debian_torch import PYTHON, torch_environ
from parts.examples import SRUN, place_of, site_with_module
from parts.modules import LMOD, needed
from parts.slurm import SlurmCluster

pytestmark = [pytest.mark.real, pytest.mark.slurm]


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `bin/python`, which imports PyTorch and mpi4py."""
    folder = tmp_path_factory.mktemp("python")
    (folder / "bin").mkdir()
    exports = " ".join(f"{name}={shlex.quote(value)}" for name, value in torch_environ().items())
    python = folder / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexport {exports}\nexec {PYTHON} "$@"\n')
    python.chmod(0o755)
    return folder


def test_the_example_of_ddp_trains_on_two_hosts_and_continues_in_another_job(
    prefix: Path, cluster_of_hosts: SlurmCluster, tmp_path: Path
) -> None:
    site = site_with_module(tmp_path, prefix, needed(LMOD).init, (SRUN, 'launcher = { name = "srun" }'))
    place_of(cluster_of_hosts, tmp_path, site, prefix).check("ddp", again="resume")


def test_the_example_of_mpi4py_shares_its_work_and_a_rank_that_fails_ends_the_job(
    prefix: Path, slurm_cluster: SlurmCluster, tmp_path: Path
) -> None:
    """By Open MPI, with which Debian's mpi4py is linked."""
    mpirun = 'launcher = { name = "mpirun", options = ["--allow-run-as-root", "--oversubscribe"] }'
    for name in ("mpirun", "orted"):
        (prefix / "bin" / name).unlink(missing_ok=True)
        (prefix / "bin" / name).symlink_to(f"/usr/bin/{name}.openmpi" if name == "mpirun" else f"/usr/bin/{name}")
    openmpi = ('family = "mpich"', 'family = "openmpi"')
    site = site_with_module(tmp_path, prefix, needed(LMOD).init, (SRUN, mpirun), openmpi)
    place = place_of(slurm_cluster, tmp_path, site, prefix)
    ran = place.run("mpi4py", "--most 200", "--nodes", "1", "--ranks-per-node", "2")
    assert "by 2 ranks on 1 nodes" in ran.printed
    with pytest.raises(AssertionError, match="No such file"):
        place.run("mpi4py", "--data-dir nowhere", "--nodes", "1", "--ranks-per-node", "2")
