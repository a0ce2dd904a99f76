"""DDP for real: Debian's PyTorch over gloo, its ranks started by mpiexec of both families and by srun on two hosts; and broken.

The program, the reports and the judge are those of a build. Only the environment is not one of ours.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from parts.debian_torch import PYTHON, torch_environ
from parts.paths import PROGRAMS
from parts.reports import make_proof
from parts.slurm import SlurmCluster
from provision.model.verdict import Verdict
from provision.proof.strategies import judge

pytestmark = pytest.mark.real

MPIEXEC = {"mpich": ("mpiexec.mpich",), "openmpi": ("mpiexec.openmpi", "--oversubscribe", "--allow-run-as-root")}
DATA = PROGRAMS / "data" / "digits.npz"


def command(out: Path, *options: str, program: Path = PROGRAMS / "ddp.py") -> list[str]:
    """The command of one rank."""
    return [PYTHON, "-u", str(program), "--data", str(DATA), "--out", str(out), "--stall", "20", *options]


def run_ranks(launcher: tuple[str, ...], argv: list[str]) -> subprocess.CompletedProcess[str]:
    """Run two ranks of a command on this machine."""
    if shutil.which(launcher[0]) is None:
        pytest.skip(f"there is no {launcher[0]} here (`.ci/install` brings it)")
    environ = {**os.environ, **torch_environ()}
    return subprocess.run(
        [*launcher, "-n", "2", *argv],
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


def verdict_of(out: Path, nodes: int = 1, accuracy: float = 0.9) -> tuple[Verdict, list[dict[str, Any]]]:
    """What the judge makes of the reports, and the reports."""
    reports = [json.loads(path.read_text()) for path in sorted(out.glob("report-*.json"))]
    return judge(make_proof("ddp", 2, nodes=nodes), reports, accuracy), reports


@pytest.mark.parametrize("family", ["openmpi", pytest.param("mpich", marks=pytest.mark.long)])
def test_ranks_of_mpiexec_train_together(family: str, tmp_path: Path) -> None:
    done = run_ranks(MPIEXEC[family], command(tmp_path / "out"))
    verdict, reports = verdict_of(tmp_path / "out")
    assert verdict.passed and done.returncode == 0, (verdict.failures, done.stderr)
    assert verdict.figures.images_per_second
    assert [len(report["shard"]["orders"]) for report in reports] == [8, 8]


def program_with(folder: Path, text: str) -> Path:
    """The program with changes: `text` changes the class `Ddp`."""
    program = folder / "changed.py"
    start = f"import os, sys\nsys.path.insert(0, {str(PROGRAMS)!r})\nimport ddp\nfrom ddp import Ddp\n"
    more = "lambda parser: ddp.add_communication(parser, ('AUTO', 'GLOO'), '')"
    program.write_text(f"{start}{text}\nddp.main(Ddp, 'changed', {more})\n")
    return program


NEITHER_AVERAGE_NOR_SET_EPOCH = """
def train_step(self, *batch):
    self.sampler.set_epoch = lambda epoch: None
    with self.model.no_sync():
        return original(self, *batch)
original, Ddp.train_step = Ddp.train_step, train_step
"""
NO_BROADCAST = """
def parallel(self, network):
    own = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    wrapped = original(self, network)
    network.load_state_dict(own)
    return wrapped
original, Ddp.parallel = Ddp.parallel, parallel
"""


@pytest.mark.parametrize(
    ("text", "checks"),
    [
        (NEITHER_AVERAGE_NOR_SET_EPOCH, {"shards", "weights"}),
        pytest.param(NO_BROADCAST, {"broadcast", "restart", "weights"}, marks=pytest.mark.long),
    ],
    ids=["step", "broadcast"],
)
def test_ranks_that_do_not_train_together_fail_the_checks_that_name_it(
    text: str, checks: set[str], tmp_path: Path
) -> None:
    program = program_with(tmp_path, text)
    run_ranks(MPIEXEC["mpich"], command(tmp_path / "out", "--epochs", "3", program=program))
    verdict, _ = verdict_of(tmp_path / "out", accuracy=0.1)
    assert {failure.name for failure in verdict.failures} == checks


@pytest.mark.slurm
def test_a_rank_that_is_killed_ends_all_and_is_named(cluster_of_hosts: SlurmCluster, tmp_path: Path) -> None:
    """srun lets the others live: gloo ends them, long before the limit."""
    program = program_with(
        tmp_path, "Ddp.end_epoch = lambda self, *figures: os.kill(os.getpid(), 9 if self.rank else 0)"
    )
    argv = ("srun", "--nodes=2", "--ntasks=2", *command(tmp_path / "out", program=program))
    done = cluster_of_hosts.run(*argv, check=False, environ=torch_environ())
    verdict, reports = verdict_of(tmp_path / "out", nodes=2)
    assert done.returncode != 0
    failure = verdict.failures[0]
    assert failure.name == "reports" and "1 stopped without an error message" in failure.message
    assert "rank 1 of 2 (knl2" in failure.message and "onnection" in failure.message
    assert all(report["stage"] == "training" for report in reports)


# A second network, which does not lead to the other node, and a file of hosts with names on the wrong networks.
TWO_NETWORKS = """set -e
printf '127.0.0.1 localhost\\n%s' "$HOSTS" >"$1/hosts-$SLURM_PROCID"
mount --bind "$1/hosts-$SLURM_PROCID" /etc/hosts
if ! ip link show other0 >/dev/null 2>&1; then
  ip link add name other0 type bridge
  ip address add 10.77.0.$((SLURM_PROCID + 1))/24 dev other0
  ip link set other0 up
fi
shift
exec "$@"
"""
LOOPBACK, OTHER = "127.0.1.1 knl1 knl2\n", "10.77.0.1 knl1\n10.77.0.2 knl2\n"


@pytest.mark.slurm
@pytest.mark.parametrize(
    ("hosts", "asked"),
    [
        (LOOPBACK, ""),
        pytest.param(OTHER, "", marks=pytest.mark.long),
        pytest.param(OTHER, "other0", marks=pytest.mark.long),
    ],
    ids=["loopback", "other", "wish"],
)
def test_gloo_uses_the_network_on_which_the_nodes_reach_each_other(
    cluster_of_hosts: SlurmCluster, tmp_path: Path, hosts: str, asked: str
) -> None:
    """With names of the loopback or of another network gloo alone waits 55 s and fails; an impossible wish is an error."""
    wrapped = ("unshare", "--mount", "bash", "-c", TWO_NETWORKS, "x", str(tmp_path))
    argv = ("srun", "--nodes=2", "--ntasks=2", *wrapped, *command(tmp_path / "out"))
    environ = {**torch_environ(), "HOSTS": hosts, **({"GLOO_SOCKET_IFNAME": asked} if asked else {})}
    done = cluster_of_hosts.run(*argv, check=False, environ=environ)
    verdict, reports = verdict_of(tmp_path / "out", nodes=2)
    if asked:
        assert "cannot connect to knl1 by the interface that is set, other0" in verdict.failures[0].message
        return
    assert verdict.passed, (verdict.failures, done.stderr)
    assert verdict.figures.hosts == ("knl1", "knl2")
    assert {report["communication"]["interface"] for report in reports} == {"eth0"}
