"""Session fixtures of the real parts; `conftest.py` takes them in with `pytest_plugins = ["parts.fixtures"]`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from parts.modules import ModuleTree, build_module_tree
from parts.slurm import SlurmCluster, missing_programs


@pytest.fixture(scope="session")
def slurm_cluster() -> Iterator[SlurmCluster]:
    """One cluster for all tests: nodes `knl[1-2]` and `hsw[1-2]`, partitions `knl`, `haswell` and `short`."""
    if missing := missing_programs():
        pytest.skip(f"Slurm is not installed here, missing: {', '.join(missing)} (`.ci/install` brings it)")
    with SlurmCluster() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def module_tree(tmp_path_factory: pytest.TempPathFactory) -> ModuleTree:
    """One tree of site modules for all tests: gcc (and a broken one), mpich, python; nobody writes into it."""
    return build_module_tree(tmp_path_factory.mktemp("site"))
