"""Threads: how many a rank gets, who sets them, and that the ranks of a node do not start more than it has."""

from __future__ import annotations

from typing import Any

import pytest

from golden_files import Words
from provision.launch.rank_threads import (
    RankThreads,
    explain_too_many_threads,
    job_environ,
    module_environ,
    rank_threads,
)
from provision.profile.arch import Arch, Node
from provision.profile.site import read_site

HASWELL = {"sockets": 2, "cores": 32, "threads": 64}
CORI_KNL = {"sockets": 1, "cores": 68, "threads": 272}
THETA_KNL = {"sockets": 1, "cores": 64, "threads": 256}


def arch(**tables: Any) -> Arch:
    """An arch whose profile has these tables."""
    table = {"target": "haswell", "mpi": {"provider": "site"}, **tables}
    data = {"name": "x", "root": "/r", "stack": "s", "scheduler": {"system": "slurm"}, "archs": {"a": table}}
    return read_site(data, "x.toml", {}).arch("a")


def node(table: dict[str, int]) -> Node:
    """The node that this table describes."""
    node = arch(node=table).node
    assert node is not None
    return node


@pytest.mark.parametrize(
    ("shape", "ranks", "expected"),
    [
        (HASWELL, 1, RankThreads(omp=32, inter=2, intra=32)),
        (HASWELL, 2, RankThreads(omp=16, inter=1, intra=16)),
        ({"sockets": 2, "cores": 40}, 1, RankThreads(omp=40, inter=1, intra=40)),
        ({"sockets": 2, "cores": 48}, 48 / 32, RankThreads(omp=32, inter=1, intra=32)),
        (CORI_KNL, 1, RankThreads(omp=68, inter=1, intra=68)),
        (CORI_KNL, 4, RankThreads(omp=17, inter=1, intra=17)),
        (HASWELL, 64, RankThreads(omp=1, inter=1, intra=1)),
    ],
)
def test_threads_follow_the_shape_of_the_node(shape: dict[str, int], ranks: float, expected: RankThreads) -> None:
    """A profile without a shape sets no variables."""
    assert rank_threads(arch(node=shape), ranks) == expected
    assert (rank_threads(arch(), ranks), job_environ(arch(), 2), module_environ(arch())) == (None, (), ())


def test_a_job_on_theta_sets_62_threads_for_a_rank() -> None:
    theta = arch(node=THETA_KNL, threads={"owner": "job", "omp": 62, "environ": {"KMP_BLOCKTIME": 0}})
    assert job_environ(theta, 1) == (
        ("OMP_NUM_THREADS", "62"),
        ("KMP_BLOCKTIME", "0"),
        ("NUM_INTER_THREADS", "1"),
        ("NUM_INTRA_THREADS", "62"),
    )
    assert dict(job_environ(theta, 2))["OMP_NUM_THREADS"] == "31"
    assert module_environ(theta) == ()


def test_a_job_does_not_set_openmp_threads_if_the_module_does() -> None:
    cori = arch(node=CORI_KNL, threads={"owner": "module", "omp": 66, "inter": 2, "intra": 32})
    assert job_environ(cori, 1) == (("NUM_INTER_THREADS", "2"), ("NUM_INTRA_THREADS", "32"))
    assert module_environ(cori) == (("OMP_NUM_THREADS", "66"),)
    assert module_environ(arch(threads={"owner": "module"})) == ()


@pytest.mark.parametrize(
    ("shape", "ranks", "inter", "intra", "fits"),
    [
        (HASWELL, 1, 2, 32, True),
        (HASWELL, 1, 2, 33, False),
        (CORI_KNL, 1, 2, 136, True),
        (CORI_KNL, 1, 2, 137, False),
        (THETA_KNL, 1, 4, 68, False),
        (THETA_KNL, 4, 2, 32, True),
        (THETA_KNL, 5, 2, 32, False),
    ],
)
def test_more_threads_than_the_node_has_are_reported(
    shape: dict[str, int], ranks: int, inter: int, intra: int, fits: bool, words: Words
) -> None:
    reason = explain_too_many_threads(node(shape), ranks, inter, intra)
    assert (reason is None) is fits
    if reason:
        words("job", reason)
