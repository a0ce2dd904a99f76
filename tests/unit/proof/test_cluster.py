"""Workers: how one finds its number in the variables of its launcher, and how all exchange their addresses."""

from __future__ import annotations

import importlib.util
import json
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

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


def exchange_addresses(cluster: ModuleType, folder: Path, hosts: list[str]) -> list[dict[str, Any]]:
    """What each worker gets, if one worker for each of `hosts` starts at the same time."""
    with ThreadPoolExecutor(len(hosts)) as pool:
        return list(
            pool.map(lambda rank: cluster.meet(str(folder), rank, len(hosts), 10, hosts[rank]), range(len(hosts)))
        )


def test_workers_on_one_node_use_the_loopback_with_different_ports(cluster: ModuleType, tmp_path: Path) -> None:
    found = exchange_addresses(cluster, tmp_path / "cluster", ["n1", "n1", "n1"])
    assert found[0] == found[1] == found[2]
    assert (found[0]["interface"], found[0]["local_size"]) == ("lo", 3)
    assert all(address.startswith("127.0.0.1:") for address in found[0]["workers"])
    assert len(set(found[0]["workers"])) == 3


def test_workers_on_several_nodes_use_what_the_others_reach_in_order_of_rank(
    cluster: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name of n9 is that of its loopback; n10's is right."""
    monkeypatch.setattr(cluster, "own_interfaces", lambda: [("eth0", "10.9.9.9"), ("ib0", "10.1.1.1")])
    monkeypatch.setattr(
        cluster, "reach", lambda address, _port: {"n10": "10.9.9.9", "10.1.1.1": "10.1.1.1"}.get(address)
    )
    found = exchange_addresses(cluster, tmp_path / "cluster", ["n10", "n9", "n10"])
    assert [[address.split(":")[0] for address in one["workers"]] for one in found] == [["n10", "10.1.1.1", "n10"]] * 3
    assert [(one["interface"], one["local_size"]) for one in found] == [("eth0", 2), ("ib0", 1), ("eth0", 2)]


NAMES = [("n1", "n1"), ("eth0", "10.0.0.1"), ("ib0", "10.1.0.1")]


@pytest.mark.parametrize(
    ("answers", "wanted", "chosen"),
    [
        ([["10.0.0.1", "10.0.0.1", "10.1.0.1"]], (), ("n1", "eth0")),
        ([["10.0.0.1", "10.0.0.1", "10.1.0.1"]], ("ib0",), ("10.1.0.1", "ib0")),
        ([[None, None, "10.1.0.1"]], (), ("10.1.0.1", "ib0")),
        # Each of the others is on one of the two networks only, or the name means another network to each.
        ([[None, "10.0.0.1", "10.1.0.1"], [None, None, "10.1.0.1"]], (), ("10.1.0.1", "ib0")),
        ([["10.0.0.1", "10.0.0.1", None], ["10.1.0.1", "10.0.0.1", None]], (), ("10.0.0.1", "eth0")),
        # An address of a router in front of it, for which it has no interface.
        ([["192.0.2.1", None, None]], (), ("n1", None)),
    ],
)
def test_the_first_address_is_chosen_that_all_other_nodes_reach(
    cluster: ModuleType, answers: list[list[str | None]], wanted: tuple[str, ...], chosen: tuple[str, str | None]
) -> None:
    assert cluster.choose_address(NAMES, answers, wanted) == chosen


@pytest.mark.parametrize(
    ("answers", "wanted"),
    [
        ([[None, None, None]], ()),
        ([["10.0.0.1", "10.0.0.1", None], [None, None, "10.1.0.1"]], ()),
        ([["10.0.0.1", "10.0.0.1", None]], ("ib0",)),
    ],
)
def test_a_node_that_the_others_cannot_reach_is_named_with_its_addresses(
    cluster: ModuleType, answers: list[list[str | None]], wanted: tuple[str, ...], words: Words
) -> None:
    with pytest.raises(RuntimeError) as caught:
        cluster.choose_address(NAMES, answers, wanted)
    words("test", str(caught.value))


def test_an_address_of_the_own_node_is_not_another_node(cluster: ModuleType) -> None:
    """As with a host name that has the address 127.0.1.1 everywhere, or a bridge that all nodes have."""
    with socket.socket() as listener:
        listener.bind(("", 0))
        listener.listen()
        port = listener.getsockname()[1]
        for address in ("127.0.0.1", "127.0.1.1", *(address for _, address in cluster.own_interfaces())):
            socket.create_connection((address, port)).close()  # something answers there
            assert cluster.reach(address, port) is None


def test_a_worker_that_does_not_appear_is_named(cluster: ModuleType, tmp_path: Path, words: Words) -> None:
    with pytest.raises(RuntimeError, match=r" 0\.2 s: 1") as caught:
        cluster.meet(str(tmp_path), 0, 2, 0.2, "n1")
    words("test", str(caught.value))


def test_the_addresses_of_an_earlier_run_are_refused(cluster: ModuleType, tmp_path: Path) -> None:
    exchange_addresses(cluster, tmp_path, ["n1", "n1"])
    with pytest.raises(RuntimeError, match="empty folder"):
        cluster.meet(str(tmp_path), 0, 2, 1, "n1")
