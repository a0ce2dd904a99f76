"""A build of PyTorch from the package index (3 GB of wheels, CUDA among them), proved by DDP on the CPUs of this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from parts.provision import Tool

pytestmark = [pytest.mark.real, pytest.mark.long]
MODULE = "pytorch/2.14.1"


def test_pytorch_is_built_proved_by_ddp_published_and_verified(tmp_path: Path) -> None:
    tool = Tool(tmp_path / "root")
    done = tool.run("build", "--stack", "pytorch-2.14.1")
    assert done.returncode == 0, done.stderr
    assert "2 ranks of DDP on 1 node trained" in done.stderr
    record = tool.json("show", MODULE)["result"]
    assert record["state"] == "published"
    assert not {"compiler", "horovod", "cuda", "nccl"} & set(record["identity"])
    checks = {check["name"]: check["message"] for check in record["checks"]}
    assert checks["CUDA of the wheels"].endswith("all of the environment's wheels")
    assert checks["math backend"].startswith("oneDNN")
    proved = {check["name"] for check in record["verdict"]["checks"]}
    assert {"communication", "allreduce", "peers", "shards", "broadcast", "weights", "restart", "accuracy"} <= proved
    assert "1 fresh" in tool.run("verify", MODULE).stdout
