"""Builds for real without Horovod: MultiWorkerMirroredStrategy by srun on two hosts, MirroredStrategy on a bare machine.

The nodes of the cluster are hosts with networks of their own (`parts/hosts.py`), for TensorFlow's SlurmClusterResolver gives
every node the same port, and workers the nodes' names. They reach nothing but each other: packages were fetched before.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from parts.examples import Place
from parts.modules import LMOD, ModuleTree, needed
from parts.provision import REPOSITORY, Tool, site_file
from parts.slurm import SlurmCluster

pytestmark = [pytest.mark.real, pytest.mark.long]

WORKERS, MIRRORED = "tensorflow/2.15.1-multiworker", "tensorflow/2.21.0-mirrored"


def said(verdict: dict[str, Any]) -> dict[str, str]:
    """What each check of a verdict that passed said."""
    assert verdict["passed"] and all(check["passed"] for check in verdict["checks"]), verdict
    return {check["name"]: check["message"] for check in verdict["checks"]}


@pytest.mark.slurm
def test_workers_by_srun_on_two_hosts_find_each_other_by_tensorflows_own_resolver(
    cluster_of_hosts: SlurmCluster, module_tree: ModuleTree, tmp_path: Path
) -> None:
    """Fetched, submitted, built on a node without network, compiler module and MPI, proved by `fit` on both, published."""
    site = site_file(
        tmp_path,
        "example-slurm",
        ('stack = "tensorflow-2.15.1"', 'stack = "tensorflow-2.15.1-multiworker"'),
        ("/usr/share/lmod/lmod/init/bash", str(needed(LMOD).init)),
        ('["gcc/12.2.0", "mpich/4.0.2", "python/3.11"]', f'["{module_tree.python}"]'),
        ('cxx = "mpicxx"', 'cxx = "no-such-mpicxx"'),
        ("[scheduler]", '[network]\ncompute = "no"\n\n[scheduler]'),
    )
    tool = Tool(tmp_path / "root", {**cluster_of_hosts.environ, "EXAMPLE_SITE": str(module_tree.root)})
    words = ("--site", site, "--arch", "knl")
    early = tool.run("build", *words, "--submit")
    assert early.returncode == 1
    assert "have no network, but not everything was fetched" in early.stderr
    tool.good("fetch", *words)
    done = tool.run("build", *words, "--submit")
    assert done.returncode == 0, done.stderr
    assert "is running on knl[1-2]" in done.stderr
    assert "2 workers on 2 nodes trained" in done.stderr.splitlines()[-2], "before the line on open advisories"
    assert "compile: " not in done.stderr
    record = tool.json("show", f"knl/{WORKERS}", "--site", site)["result"]
    assert (record["state"], record["wheel"]) == ("published", None)
    verdict = record["verdict"]
    assert verdict["command"][:3] == ["srun", "--nodes=2", "--ntasks=2"]
    assert verdict["figures"]["hosts"] == ["knl1", "knl2"]
    checks = said(verdict)
    assert checks["communication"] == "AUTO, addresses from SlurmClusterResolver, trained with fit"
    assert {"allreduce", "peers", "shards", "broadcast", "weights", "restart"} <= set(checks)
    assert "horovod" not in record["versions"]
    python = Path(record["prefix"]) / "bin" / "python"
    place = Place(slurm=cluster_of_hosts, tool=tool, folder=tmp_path, job_options=words, python=python)
    place.check("multiworker", again="resume")


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Tool:
    """A root in which both tests below build the same stack; what one downloads the other does not."""
    return Tool(tmp_path_factory.mktemp("mirrored") / "root")


def test_a_stack_for_mirrored_strategy_is_built_proved_and_published_and_proved_again_as_one_process(
    tool: Tool, tmp_path: Path
) -> None:
    """No scheduler, no modules, nothing compiled; two parts of the CPU are the devices."""
    done = tool.run("build", "--stack", "tensorflow-2.21.0-mirrored")
    assert done.returncode == 0, done.stderr
    assert "2 replicas of one process on 1 node trained" in done.stderr
    assert "compile: " not in done.stderr
    record = tool.json("show", MIRRORED)["result"]
    assert record["state"] == "published"
    assert not {"compiler", "horovod"} & set(record["identity"])
    checks = said(record["verdict"])
    assert checks["replicas"].startswith("2 replicas in sync")
    assert checks["batch"].endswith("seen 32, 32 images, 2 different")
    assert {"allreduce", "weights", "restart"} <= set(checks)
    assert not list(Path(record["prefix"]).glob("lib/python3.*/site-packages/horovod"))
    # A site's own word on the same stack: its users train on one device.
    config = tmp_path / "config"
    for name in ("sites", "stacks", "requirements"):
        shutil.copytree(REPOSITORY / name, config / name)
    file = config / "stacks" / "tensorflow-2.21.0-mirrored.toml"
    file.write_text(file.read_text(encoding="utf-8").replace('program = "mirrored"', 'program = "single"'))
    again = tool.json("test", MIRRORED, PROVISION_CONFIG=str(config))
    assert again["ok"], again
    assert again["result"]["verdict"]["trained_by"] == "one process"
    assert set(said(again["result"]["verdict"])) == {
        *("reports", "ranks", "nodes", "versions", "restart", "loss", "accuracy"),
    }
