"""Which worker a process is, by its launcher's variables, and how workers learn where the others listen."""

from __future__ import annotations

import importlib.util
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import pytest

from parts.paths import PROGRAMS

PROGRAM = PROGRAMS / "cluster.py"


@pytest.fixture(scope="module")
def cluster() -> ModuleType:
    """The file as the programs import it: by path, without a package."""
    spec = importlib.util.spec_from_file_location("cluster", PROGRAM)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SRUN = {"SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "4", "SLURM_LOCALID": "1"}


@pytest.mark.parametrize(
    ("environ", "found"),
    [
        (SRUN, (3, 4, 1, True)),
        ({**SRUN, "PMI_RANK": "3", "PMI_SIZE": "4"}, (3, 4, 1, True)),
        # Hydra within a job: srun started its two proxies, and each of them ranks of its own.
        (
            {
                "SLURM_PROCID": "1",
                "SLURM_STEP_NUM_TASKS": "2",
                "PMI_RANK": "3",
                "PMI_SIZE": "4",
                "MPI_LOCALRANKID": "1",
            },
            (3, 4, 1, False),
        ),
        ({"PMI_RANK": "0", "PMI_SIZE": "2", "MPI_LOCALRANKID": "0"}, (0, 2, 0, False)),
        ({"PMI_RANK": "5", "PMI_SIZE": "8", "PALS_LOCAL_RANKID": "1"}, (5, 8, 1, False)),
        (
            {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "1"},
            (1, 2, 1, False),
        ),
    ],
)
def test_each_launcher_says_which_worker_this_is(
    cluster: ModuleType, environ: dict[str, str], found: tuple[int, int, int, bool]
) -> None:
    told = cluster.place(environ)
    assert (told["rank"], told["size"], told["local_rank"], told["srun"]) == found


def test_a_process_that_no_launcher_started_is_told_what_was_looked_for(cluster: ModuleType) -> None:
    with pytest.raises(RuntimeError, match="PMI_RANK and PMI_SIZE"):
        cluster.place({"SLURM_PROCID": "0"})


def test_tf_config_is_what_tensorflow_reads(cluster: ModuleType) -> None:
    assert json.loads(cluster.tf_config(["n1:1", "n2:2"], 1)) == {
        "cluster": {"worker": ["n1:1", "n2:2"]},
        "task": {"type": "worker", "index": 1},
    }


def test_proxies_are_taken_out_and_named(cluster: ModuleType) -> None:
    environ = {"https_proxy": "http://proxy:3128", "HTTP_PROXY": "http://proxy:3128", "HOME": "/home/ada"}
    assert cluster.unset_proxies(environ) == ["https_proxy", "HTTP_PROXY"]
    assert environ == {"HOME": "/home/ada"}


@pytest.mark.parametrize(("text", "most"), [("2", 2), ("2(x3)", 2), ("1,4(x2),2", 4), ("16(x128)", 16)])
def test_the_most_tasks_on_a_node(cluster: ModuleType, text: str, most: int) -> None:
    assert cluster.most_tasks(text) == most


def test_ports_are_apart_for_neighbouring_jobs_and_not_those_that_linux_gives_away(cluster: ModuleType) -> None:
    bases = [cluster.port_base(str(job)) for job in range(4_000_000, 4_000_100)]
    assert len(set(bases)) == 100
    assert all(1024 < base < 32768 - 64 for base in bases)


def meet(cluster: ModuleType, folder: Path, hosts: list[str]) -> list[list[str]]:
    with ThreadPoolExecutor(len(hosts)) as pool:
        return list(
            pool.map(lambda rank: cluster.meet(str(folder), rank, len(hosts), 10, hosts[rank]), range(len(hosts)))
        )


def test_workers_of_one_node_meet_on_the_loopback_each_with_a_port_of_its_own(
    cluster: ModuleType, tmp_path: Path
) -> None:
    told = meet(cluster, tmp_path / "cluster", ["n1", "n1", "n1"])
    assert told[0] == told[1] == told[2]
    assert all(address.startswith("127.0.0.1:") for address in told[0])
    assert len(set(told[0])) == 3


def test_workers_of_several_nodes_meet_by_name_in_the_order_of_ranks(cluster: ModuleType, tmp_path: Path) -> None:
    told = meet(cluster, tmp_path / "cluster", ["n10", "n9"])
    assert told[0] == told[1]
    assert [address.split(":")[0] for address in told[0]] == ["n10", "n9"]


def test_a_worker_that_does_not_come_is_named(cluster: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"did not come within 0\.2 s: 1"):
        cluster.meet(str(tmp_path), 0, 2, 0.2, "n1")


def test_the_addresses_of_an_earlier_run_are_not_taken_for_this_ones(cluster: ModuleType, tmp_path: Path) -> None:
    meet(cluster, tmp_path, ["n1", "n1"])
    with pytest.raises(RuntimeError, match="empty folder"):
        cluster.meet(str(tmp_path), 0, 2, 1, "n1")
