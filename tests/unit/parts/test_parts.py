"""The clusters of the tests end with whoever started them, however that ended."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from parts.hosts import why_not as why_not_hosts
from parts.paths import REPOSITORY
from parts.slurm import missing_programs

START = """
import sys, time
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from parts.slurm import NodeGroup, Partition, SlurmCluster
groups, partitions = (NodeGroup(name="n"),), (Partition(name="n", groups=("n",)),)
cluster = SlurmCluster(Path(sys.argv[2]), node_groups=groups, partitions=partitions, networks=sys.argv[3] == "hosts")
cluster.start()
job = cluster.submit("#!/bin/bash\\nsrun --nodes=2 --ntasks=2 sleep 600\\n", "--nodes=2", "--output=/dev/null")
while cluster.run("squeue", "--steps", "--noheader").stdout.count("sleep") < 1:
    time.sleep(0.1)
print(cluster.network.link if cluster.network else "none", flush=True)
time.sleep(600)
"""


def _alive(mark: str) -> list[str]:
    """The command lines of processes that have this in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes() and (folder / "cmdline").read_bytes():
                found.append((folder / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


@pytest.mark.skipif(bool(missing_programs()), reason=f"missing: {', '.join(missing_programs())}")
@pytest.mark.slurm
@pytest.mark.parametrize("nodes", ["hosts", "names"])
def test_nodes_go_with_whoever_started_them_and_with_them_the_jobs_and_the_network(nodes: str) -> None:
    """kill -9, while a job runs on both."""
    if nodes == "hosts" and (reason := why_not_hosts()):
        pytest.skip(f"there can be no hosts with networks of their own here: {reason}")
    with tempfile.TemporaryDirectory(prefix="s-", dir="/tmp") as root:
        argv = [sys.executable, "-c", START, str(REPOSITORY / "tests"), root, nodes]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            link = process.stdout.readline().strip()
            try:
                assert nodes == "names" or (Path("/sys/class/net") / link).exists(), link
                assert len(_alive(root)) > 4
            finally:
                process.kill()
        left, end = ["?"], time.monotonic() + 20
        while left and time.monotonic() < end:
            left = [*_alive(root), *([link] if (Path("/sys/class/net") / link).exists() else [])]
            time.sleep(0.1)
        assert not left
