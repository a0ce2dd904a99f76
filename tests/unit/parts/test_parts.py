"""The clusters of the tests: several at once, nodes that are hosts of their own, and nothing of them stays."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from parts.hosts import why_not as why_not_hosts
from parts.paths import REPOSITORY
from parts.slurm import NodeGroup, Partition, SlurmCluster, missing_programs

needs_slurm = pytest.mark.skipif(
    bool(missing_programs()), reason=f"Slurm is not installed here, missing: {', '.join(missing_programs())}"
)


@needs_slurm
@pytest.mark.slurm
def test_two_clusters_at_once_and_nothing_is_left(slurm_cluster: SlurmCluster, tmp_path: Path) -> None:
    groups = [NodeGroup(name="gpu", count=1, cpus=4, features=("a100",), gres={"gpu:a100:2": "/dev/tty[1-2]"})]
    other = SlurmCluster(node_groups=groups, partitions=[Partition(name="gpu", groups=("gpu",))])
    with other:
        root = other.root
        script = "#!/bin/bash\necho $CUDA_VISIBLE_DEVICES\nsleep 600\n"
        other.submit(script, "--gres=gpu:2", f"--output={tmp_path / 'gpus.txt'}")
        assert other.run("sinfo", "--noheader", "--format=%N %f %G").stdout.split() == ["gpu1", "a100", "gpu:a100:2"]
        assert len(slurm_cluster.run("sinfo", "--noheader", "--Node", "--format=%N").stdout.split()) >= 4
        for _ in range(50):
            if (tmp_path / "gpus.txt").exists() and (tmp_path / "gpus.txt").read_text():
                break
            other.run("sleep", "0.1")
        assert (tmp_path / "gpus.txt").read_text().strip() == "0,1"
    # Zombies have no command line: one that is not reaped yet has ended.
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not [command for command in commands if str(root).encode() in command]
    assert not root.exists()


# A program of two tasks: both listen on one port of their node's address, and the first one speaks to the second by name.
TALK = """
import os, socket, sys
rank, names = int(os.environ["SLURM_PROCID"]), ("knl1", "knl2")
assert socket.gethostname() == os.environ["SLURMD_NODENAME"] == names[rank], socket.gethostname()
with socket.create_server(("0.0.0.0", 12345)) as server:
    open(f"listens-{rank}", "w").close()
    while not os.path.exists(f"listens-{1 - rank}"):
        pass
    with socket.create_connection((names[1 - rank], 12345), timeout=20) as mine:
        there, (address, _) = server.accept()
        mine.sendall(f"from {names[rank]}".encode())
        mine.shutdown(socket.SHUT_WR)
        print(names[rank], "heard", there.makefile().read(), "at", address, flush=True)
"""


@needs_slurm
@pytest.mark.slurm
def test_nodes_that_are_hosts_have_the_same_port_each_and_find_each_other_by_name(
    cluster_of_hosts: SlurmCluster, tmp_path: Path
) -> None:
    (tmp_path / "talk.py").write_text(TALK)
    script = f"#!/bin/bash\nsrun --nodes=2 --ntasks=2 {sys.executable} talk.py\n"
    job = cluster_of_hosts.submit(script, "--nodes=2", "--ntasks-per-node=1", "--output=out.txt", cwd=tmp_path)
    state = cluster_of_hosts.wait(job)
    said = (tmp_path / "out.txt").read_text()
    assert state == "COMPLETED", said
    network = cluster_of_hosts.network
    assert network is not None
    assert sorted(said.splitlines()) == [
        f"knl1 heard from knl2 at {network.address('knl2')}",
        f"knl2 heard from knl1 at {network.address('knl1')}",
    ]


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


@needs_slurm
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
