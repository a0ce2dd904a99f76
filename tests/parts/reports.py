"""Reports of processes that trained without fault, as the programs of a proof write them, and the proof that they are of."""

from __future__ import annotations

from typing import Any

from provision.model.operation import Prove
from provision.profile.arch import Gpu, Launcher

Report = dict[str, Any]
GPU = Gpu(per_node=4, model=None, capabilities=("80",), cuda_home=None, nccl_home=None, nccl_link="shared")


def make_proof(program: str, processes: int = 2, *, nodes: int = 1, gpus: bool = False) -> Prove:
    """A proof with so many processes, or devices of one process."""
    one_process = program in ("single", "mirrored")
    return Prove(
        program=f"/site/provision/proof/programs/{program}.py",
        launcher=Launcher(name="mpiexec", options=()),
        mpiexec="mpiexec",
        nodes=nodes,
        ranks_per_node=1 if one_process else processes // nodes,
        cpus_per_task=1,
        timeout_s=100,
        training=(),
        gpu=GPU if gpus else None,
        devices=processes if program == "mirrored" else 1,
    )


def one_process() -> Report:
    """The report of a run without fault, as `provision/proof/programs/single.py` writes it."""
    return {
        "schema": 1,
        "stage": "done",
        "error": None,
        "rank": 0,
        "size": 1,
        "host": "n1",
        "pid": 100,
        "versions": {"python": "3.11.7", "tensorflow": "2.15.1", "keras": "2.15.0"},
        "weights_sha256": "after",
        "loss_before": 2.31,
        "loss": [1.0, 0.25],
        "accuracy": 0.95,
        "images_per_second": 1000.0,
        "seconds": 10.0,
        "gpu": {"visible": 0, "used": None, "bus_id": None},
        "restart": {"saved_at": 188, "saved_sha256": "half", "began_at": 188, "began_sha256": "half"},
    }


def workers() -> list[Report]:
    """Reports of two workers without fault, as `provision/proof/programs/multiworker.py` writes them."""
    return [
        {
            **one_process(),
            "rank": rank,
            "size": 2,
            "pid": 100 + rank,
            "communication": {"asked": "AUTO", "by": "TF_CONFIG", "workers": ["127.0.0.1:4001", "127.0.0.1:4002"]},
            "trained_by": "fit",
            "allreduce": {
                "inputs": [[rank + 1.0, 2 * (rank + 1.0)]],
                "expected": [3.0, 6.0],
                "sum": [3.0, 6.0],
                "average": [1.5, 3.0],
                "large_elements": 1048576,
                "large_wrong": 0,
            },
            "peers": [[other, "n1", 100 + other] for other in range(2)],
            "shard": {"start": rank * 10, "stop": rank * 10 + 10, "sha256": f"shard{rank}"},
            "weights_sha256_initial": f"before{rank}",
            "weights_sha256_broadcast": "before0",
            "weights_max_difference": 0.0,
        }
        for rank in range(2)
    ]


def ddp_ranks() -> list[Report]:
    """Reports of two ranks without fault, as `provision/proof/programs/ddp.py` writes them."""
    reports = workers()
    for rank, report in enumerate(reports):
        report["versions"] = {"python": "3.11.7", "numpy": "1.26.4", "torch": "2.9.1"}
        report["communication"] = {
            "asked": "gloo",
            "by": "env://",
            "workers": ["n1:4001", "n1:4002"],
            "interface": "lo",
        }
        report["shard"].update(orders=[f"first{rank}", f"second{rank}"], shared=0)
    return reports
