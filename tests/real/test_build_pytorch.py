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


def test_both_frameworks_have_one_horovod_one_environment_and_one_verdict(tmp_path: Path) -> None:
    tool, stack = Tool(tmp_path / "root"), "tensorflow-2.21.0-pytorch-2.7.1"
    done = tool.run("build", "--stack", stack)
    assert done.returncode == 0, done.stderr
    record = tool.json("show", "tensorflow/2.21.0-pytorch-2.7.1")["result"]
    proved = {check["name"] for check in record["verdict"]["checks"]}
    assert {"weights", "PyTorch: weights", "PyTorch: broadcast", "Keras on torch: restart"} <= proved
    assert {"framework built in", "PyTorch: framework built in"} <= {check["name"] for check in record["checks"]}
    stacks = tool.json("compat")["result"]["stacks"]
    assert [row["state"] for row in stacks if row["stack"] == stack] == ["works"]
