"""Workers: how one finds its number in the variables of its launcher, and how all exchange their addresses."""

from __future__ import annotations

import importlib.util
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import pytest

from golden_files import Words
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
    ("environ", "expected"),
    [
        (SRUN, (3, 4, 1, True)),
        ({**SRUN, "PMI_RANK": "3", "PMI_SIZE": "4"}, (3, 4, 1, True)),
        # Hydra within a job: srun started its two proxies, and each proxy started some of the ranks.
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
def test_the_variables_of_each_launcher_give_the_number_of_a_worker(
    cluster: ModuleType, environ: dict[str, str], expected: tuple[int, int, int, bool]
) -> None:
    place = cluster.place(environ)
    assert (place["rank"], place["size"], place["local_rank"], place["srun"]) == expected


def test_a_process_without_a_launcher_fails_with_the_missing_variables(cluster: ModuleType) -> None:
    with pytest.raises(RuntimeError, match="PMI_RANK and PMI_SIZE"):
        cluster.place({"SLURM_PROCID": "0"})


def test_tf_config_has_the_form_that_tensorflow_reads(cluster: ModuleType) -> None:
    assert json.loads(cluster.tf_config(["n1:1", "n2:2"], 1)) == {
        "cluster": {"worker": ["n1:1", "n2:2"]},
        "task": {"type": "worker", "index": 1},
    }


def test_proxy_variables_are_removed_and_returned(cluster: ModuleType) -> None:
    environ = {"https_proxy": "http://proxy:3128", "HTTP_PROXY": "http://proxy:3128", "HOME": "/home/ada"}
    assert cluster.unset_proxies(environ) == ["https_proxy", "HTTP_PROXY"]
    assert environ == {"HOME": "/home/ada"}


@pytest.mark.parametrize(("text", "most"), [("2", 2), ("2(x3)", 2), ("1,4(x2),2", 4), ("16(x128)", 16)])
def test_the_most_tasks_on_a_node(cluster: ModuleType, text: str, most: int) -> None:
    assert cluster.most_tasks(text) == most


def test_neighbouring_jobs_get_different_ports_outside_linuxs_range(cluster: ModuleType) -> None:
    bases = [cluster.port_base(str(job)) for job in range(4_000_000, 4_000_100)]
    assert len(set(bases)) == 100
    assert all(1024 < base < 32768 - 64 for base in bases)


def exchange_addresses(cluster: ModuleType, folder: Path, hosts: list[str]) -> list[list[str]]:
    """The addresses that each worker gets, if one worker for each of `hosts` starts at the same time."""
    with ThreadPoolExecutor(len(hosts)) as pool:
        return list(
            pool.map(lambda rank: cluster.meet(str(folder), rank, len(hosts), 10, hosts[rank]), range(len(hosts)))
        )


def test_workers_on_one_node_use_the_loopback_with_different_ports(cluster: ModuleType, tmp_path: Path) -> None:
    addresses = exchange_addresses(cluster, tmp_path / "cluster", ["n1", "n1", "n1"])
    assert addresses[0] == addresses[1] == addresses[2]
    assert all(address.startswith("127.0.0.1:") for address in addresses[0])
    assert len(set(addresses[0])) == 3


def test_workers_on_several_nodes_use_host_names_in_order_of_rank(cluster: ModuleType, tmp_path: Path) -> None:
    addresses = exchange_addresses(cluster, tmp_path / "cluster", ["n10", "n9"])
    assert addresses[0] == addresses[1]
    assert [address.split(":")[0] for address in addresses[0]] == ["n10", "n9"]


def test_a_worker_that_does_not_appear_is_named(cluster: ModuleType, tmp_path: Path, words: Words) -> None:
    with pytest.raises(RuntimeError, match=r" 0\.2 s: 1") as caught:
        cluster.meet(str(tmp_path), 0, 2, 0.2, "n1")
    words("test", str(caught.value))


def test_the_addresses_of_an_earlier_run_are_refused(cluster: ModuleType, tmp_path: Path) -> None:
    exchange_addresses(cluster, tmp_path, ["n1", "n1"])
    with pytest.raises(RuntimeError, match="empty folder"):
        cluster.meet(str(tmp_path), 0, 2, 1, "n1")
