"""A private Slurm cluster on one machine: munged, slurmctld and one slurmd per emulated node, all of them real.

It owns its processes, its ports and one short folder (unix sockets end at 108 bytes), and leaves nothing of the
machine's own Slurm or munge touched, so two clusters can run at once. Jobs run as the user who runs the tests.

All nodes are this machine, at 127.0.0.1, and have names for Slurm alone; with `networks` each is a host of its own
(`hosts.py`), with a name and an address that the others know. What speaks TCP between nodes by itself needs that.

`MpiDefault=none` is deliberate: a bare `srun` then starts N programs that each believe to be rank 0 of 1 and exit 0,
the classic silent failure; only `srun --mpi=pmi2` makes them one job of N ranks.
"""

from __future__ import annotations

import atexit
import contextlib
import getpass
import os
import random
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import pytest

from parts.hosts import SWITCH, Network, make_network
from provision.schedulers.status import ENDED

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "sinfo", "scontrol", "scancel", "setpriv")

# Debian keeps daemons where a plain user's PATH does not look.
_SEARCH_PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
# Below the kernel's ephemeral range, so that no passing client connection takes a port between choice and use.
_PORTS = range(20000, 30000)
_SOCKET_PATH_LIMIT = 107


# Kills what outlives its daemon when the process that started it closes stdin or is gone, however that ended: slurmstepd and
# tasks leave their process group, but carry the SLURM_CONF of the cluster. A task may start another one while this looks.
REAPER = """
import os, sys, time
sys.stdin.read()
mark = sys.argv[1].encode() + bytes(1)
for _ in range(50):
    left = False
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if mark in file.read():
                    left = True
                    os.kill(int(pid), 9)
        except OSError:
            pass
    if not left:
        break
    time.sleep(0.1)
"""


class ClusterError(RuntimeError):
    """The cluster did not start or did not answer; the message quotes the log that shows why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroup:
    """Emulated nodes of one kind, `<name>1` to `<name><count>`."""

    name: str
    count: int = 2
    features: tuple[str, ...] = ()
    cpus: int = 2
    memory_mb: int = 4000
    gres: Mapping[str, str] | None = None
    """What `Gres=` says, mapped to the device nodes behind it: `{"gpu:a100:2": "/dev/tty[1-2]"}`."""

    @property
    def hosts(self) -> str:
        return f"{self.name}[1-{self.count}]"

    @property
    def node_names(self) -> tuple[str, ...]:
        return tuple(f"{self.name}{index}" for index in range(1, self.count + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A queue over node groups."""

    name: str
    groups: tuple[str, ...]
    priority: int = 1
    """Jobs of a partition with a higher one take the nodes of others, if `PreemptType` says so."""


NODE_GROUPS = (NodeGroup(name="knl", features=("knl",)), NodeGroup(name="hsw", features=("haswell",)))
PARTITIONS = (
    Partition(name="knl", groups=("knl",)),
    Partition(name="haswell", groups=("hsw",)),
)


def missing_programs() -> tuple[str, ...]:
    """Names of the programs that a cluster needs and this machine lacks; empty where a cluster can start."""
    return tuple(name for name in PROGRAMS if shutil.which(name, path=_SEARCH_PATH) is None)


class SlurmCluster:
    """One Slurm cluster as a context manager.

    Args:
        root: a folder with a short path for everything the cluster writes. Left out, a fresh one is made under `/tmp`
            and removed by `stop()`; a folder given by the caller stays, logs and all.
        node_groups: what nodes there are.
        partitions: the queues over them; the first is the default one.
        settings: further `slurm.conf` lines as a mapping; they replace lines of the same key.
        networks: every node is a host of its own; `hosts.why_not` says if that is impossible.
    """

    def __init__(
        self,
        root: Path | None = None,
        *,
        node_groups: Sequence[NodeGroup] = NODE_GROUPS,
        partitions: Sequence[Partition] = PARTITIONS,
        settings: Mapping[str, str] | None = None,
        networks: bool = False,
    ) -> None:
        self._given_root = root
        self._root: Path | None = root
        self.node_groups = tuple(node_groups)
        self.partitions = tuple(partitions)
        self._settings = dict(settings or {})
        self._networks = networks
        self.network: Network | None = None
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        self._reaper: subprocess.Popen[bytes] | None = None

    # -- what callers use ------------------------------------------------------------------------------------------

    @property
    def root(self) -> Path:
        if self._root is None:
            raise ClusterError("the cluster is not started: it has no folder yet")
        return self._root

    @property
    def conf(self) -> Path:
        return self.root / "slurm.conf"

    @property
    def environ(self) -> dict[str, str]:
        """Env var changes that point every Slurm client, and every job submitted by it, at this cluster."""
        return {"SLURM_CONF": str(self.conf)}

    @property
    def node_names(self) -> tuple[str, ...]:
        return tuple(name for group in self.node_groups for name in group.node_names)

    def run(
        self,
        *argv: str | Path,
        check: bool = True,
        environ: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdin: str | None = None,
        timeout_s: float = 60,
    ) -> subprocess.CompletedProcess[str]:
        """Run a program as a user of this cluster would; `check` turns a failure into an error with its output."""
        result = subprocess.run(
            [str(word) for word in argv],
            env=self._client_environ(environ or {}),
            cwd=cwd,
            input=stdin if stdin is not None else "",
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
        if check and result.returncode != 0:
            words = " ".join(map(str, argv))
            raise ClusterError(f"`{words}` exited {result.returncode}\n{result.stdout}{result.stderr}")
        return result

    def submit(self, script: str, *options: str, cwd: Path | None = None) -> str:
        """Submit a job script, given as text, and return the job's id."""
        output = self.run("sbatch", "--parsable", *options, cwd=cwd, stdin=script).stdout
        return output.strip().split(";")[0]

    def show_job(self, job_id: str) -> str:
        """The raw line of `scontrol show job -o`."""
        return self.run("scontrol", "show", "job", "-o", job_id).stdout.strip()

    def wait(self, job_id: str, *, timeout_s: float = 60) -> str:
        """Wait until a job has ended and return its native state (`COMPLETED`, `FAILED`, ...)."""
        for _ in _ticks(timeout_s):
            line = self.show_job(job_id)
            state = _field(line, "JobState")
            if state in ENDED:
                return state
        raise ClusterError(f"job {job_id} did not end in {timeout_s:g} s: {line}\n{self._evidence()}")

    def expire(self, job_id: str) -> None:
        """Move a running job's end to this second: Slurm ends it as TIMEOUT at its next look, within 30 s.

        A time limit itself cannot be shorter than a minute.
        """
        self.run("scontrol", "update", f"JobId={job_id}", "EndTime=now+1")

    def start_again(self, job_id: str) -> None:
        """Start a job that goes back into the queue: Slurm lets it wait until the credentials of its first start expire.

        In the next second: slurmd refuses credentials of the second in which it revoked the first ones.
        """
        for _ in _ticks(60):
            if _field(self.show_job(job_id), "JobState") == "PENDING":
                self.run("scontrol", "update", f"JobId={job_id}", "StartTime=now+1")
                return
        raise ClusterError(f"job {job_id} did not go back into the queue\n{self._evidence()}")

    # -- life ------------------------------------------------------------------------------------------------------

    def start(self, *, timeout_s: float = 60) -> None:
        """Start every daemon and return when all nodes are idle; skip the test where Slurm is not installed.

        Raises:
            ClusterError: a daemon died or a node did not come up; quotes the logs.
        """
        if self._daemons:
            return
        if missing := missing_programs():
            pytest.skip(f"Slurm is not installed here, missing: {', '.join(missing)} (`.ci/install` brings it)")
        atexit.register(self.stop)
        try:
            self._start(timeout_s)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End every process of this cluster, jobs included, and remove the folder that it made itself."""
        atexit.unregister(self.stop)
        try:
            if self._alive("slurmctld"):
                self._cancel_jobs()
            # slurmd first: it must not report nodes to a controller that is gone; munged last: all of them need it.
            last = {"slurmctld": 1, "munged": 2, "switch": 3}
            for name in sorted(self._daemons, key=lambda name: last.get(name, 0)):
                _end(self._daemons[name])
        finally:
            self._daemons.clear()
            if self._reaper is not None:
                self._reaper.communicate()
                self._reaper = None
            if self._root is not None and self._given_root is None:
                shutil.rmtree(self._root, ignore_errors=True)
                self._root = None

    def __enter__(self) -> SlurmCluster:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # -- inside ----------------------------------------------------------------------------------------------------

    def _start(self, timeout_s: float) -> None:
        root = self._prepare_root()
        reaper = [sys.executable, "-I", "-c", REAPER, f"SLURM_CONF={self.conf}"]
        self._reaper = subprocess.Popen(reaper, env={}, stdin=subprocess.PIPE, start_new_session=True)
        if self._networks:
            switch = self._spawn("switch", SWITCH)
            self.network = make_network(switch.pid, self.node_names, root)
        self.conf.write_text(self._slurm_conf(_free_ports(1 + len(self.node_names))))
        own = {"socket": "munge", "key-file": "munge.key", "pid-file": "munged.pid", "seed-file": "munged.seed"}
        places = [f"--{option}={root / name}" for option, name in own.items()]
        # --force: munged dislikes folders that others cannot enter, which a test's private folder may be.
        self._spawn("munged", ["munged", "--foreground", "--force", *places])
        self._wait_for("munged to open its socket", (root / "munge").exists, timeout_s)
        self._spawn("slurmctld", ["slurmctld", "-D", "-f", str(self.conf)])
        self._wait_for("slurmctld to answer", self._controller_answers, timeout_s)
        for name in self.node_names:
            daemon = (_program("slurmd"), "-D", "-f", str(self.conf), "-N", name)
            if self.network is None:
                self._spawn(name, daemon)
                continue
            host = self._spawn(name, self.network.host(name, *daemon))
            self.network.plug_in(self._daemons["switch"].pid, name, host.pid)
        self._wait_for("all nodes to be idle", self._all_idle, timeout_s)

    def _prepare_root(self) -> Path:
        if self._given_root is None:
            self._root = Path(tempfile.mkdtemp(prefix="slurm-", dir="/tmp"))
        root = self.root
        root.mkdir(parents=True, exist_ok=True)
        longest = f"{root}/spool.{max(self.node_names, key=len)}/{max(self.node_names, key=len)}_4294967295.4294967295"
        if len(longest) > _SOCKET_PATH_LIMIT:
            raise ClusterError(f"the path of `{root}` is too long for Slurm's unix sockets; give a shorter one")
        root.chmod(0o755)
        (root / "state").mkdir(exist_ok=True)
        for name in self.node_names:
            (root / f"spool.{name}").mkdir(exist_ok=True)
        key = root / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(128))
        (root / "gres.conf").write_text(self._gres_conf())
        return root

    def _slurm_conf(self, ports: Sequence[int]) -> str:
        root, user = self.root, getpass.getuser()
        # The short name is what slurmctld asks of the kernel; the address beside it spares everyone a look-up, so a
        # host name that resolves to nothing does no harm.
        host = socket.gethostname().split(".")[0]
        settings = {
            "ClusterName": "emulated",
            "SlurmctldHost": f"{host}({self.network.ours if self.network else '127.0.0.1'})",
            "SlurmctldPort": str(ports[0]),
            "SlurmUser": user,
            "SlurmdUser": user,
            "AuthType": "auth/munge",
            # A requeued job waits until the credentials of its first start have expired: 120 s, if nothing is set.
            "AuthInfo": f"socket={root / 'munge'},cred_expire=20",
            "CredType": "cred/munge",
            "StateSaveLocation": str(root / "state"),
            "SlurmdSpoolDir": str(root / "spool.%n"),
            "SlurmctldPidFile": str(root / "slurmctld.pid"),
            "SlurmdPidFile": str(root / "slurmd.%n.pid"),
            "SlurmctldLogFile": str(root / "slurmctld.log"),
            "SlurmdLogFile": str(root / "slurmd.%n.log"),
            "MailProg": "/bin/true",
            "ProctrackType": "proctrack/linuxproc",
            "TaskPlugin": "task/none",
            "JobAcctGatherType": "jobacct_gather/none",
            "SelectType": "select/cons_tres",
            "SelectTypeParameters": "CR_Core",
            "SlurmdParameters": "config_overrides",
            "SchedulerParameters": "sched_interval=1,bf_interval=1,batch_sched_delay=0",
            "MpiDefault": "none",
            "ReturnToService": "2",
            "MinJobAge": "600",
            "KillWait": "2",
            "OverTimeLimit": "0",
            "InactiveLimit": "0",
            "JobRequeue": "0",
        }
        gres_names = sorted({gres.split(":")[0] for group in self.node_groups for gres in group.gres or {}})
        if gres_names:
            settings["GresTypes"] = ",".join(gres_names)
        settings |= self._settings
        lines = [f"{key}={value}" for key, value in settings.items()]

        free = iter(ports[1:])
        for group in self.node_groups:
            shape = f"CPUs={group.cpus} RealMemory={group.memory_mb}"
            if group.features:
                shape += f" Features={','.join(group.features)}"
            if group.gres:
                shape += f" Gres={','.join(group.gres)}"
            lines += [f"NodeName={name} {self._where(name)} Port={next(free)} {shape}" for name in group.node_names]
        hosts = {group.name: group.hosts for group in self.node_groups}
        lines += [
            f"PartitionName={partition.name} Nodes={','.join(hosts[group] for group in partition.groups)} State=UP"
            " MaxTime=UNLIMITED DefaultTime=30"
            f" Default={'NO' if index else 'YES'} PriorityTier={partition.priority}"
            for index, partition in enumerate(self.partitions)
        ]
        return "\n".join(lines) + "\n"

    def _where(self, name: str) -> str:
        """Where a node is, as slurm.conf has it."""
        if self.network:
            return f"NodeHostname={name} NodeAddr={self.network.address(name)}"
        return f"NodeHostname={socket.gethostname().split('.')[0]} NodeAddr=127.0.0.1"

    def _gres_conf(self) -> str:
        lines = []
        for group in self.node_groups:
            for gres, files in (group.gres or {}).items():
                name, *kind, _count = gres.split(":")
                typed = f" Type={kind[0]}" if kind else ""
                lines.append(f"NodeName={group.hosts} Name={name}{typed} File={files}")
        return "".join(f"{line}\n" for line in lines)

    def _client_environ(self, changes: Mapping[str, str]) -> dict[str, str]:
        stray = re.compile(r"(SLURM|SBATCH|SALLOC|SRUN|SQUEUE|SINFO|SCANCEL|PMI2?)_")
        kept = {name: value for name, value in os.environ.items() if not stray.match(name)}
        return {**kept, **self.environ, **changes}

    def _spawn(self, name: str, argv: Sequence[str]) -> subprocess.Popen[bytes]:
        with (self.root / f"{name}.out").open("wb") as out:
            self._daemons[name] = subprocess.Popen(
                # If the tests are killed outright, the kernel ends the daemons: nothing stays behind.
                ["setpriv", "--pdeathsig", "KILL", _program(argv[0]), *argv[1:]],
                env=self._client_environ({}),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return self._daemons[name]

    def _alive(self, name: str) -> bool:
        return name in self._daemons and self._daemons[name].poll() is None

    def _controller_answers(self) -> bool:
        return self.run("scontrol", "ping", check=False).returncode == 0

    def _all_idle(self) -> bool:
        result = self.run("sinfo", "--noheader", "--Node", "--format=%N %T", check=False)
        states = dict(line.split() for line in result.stdout.splitlines())
        return states == dict.fromkeys(self.node_names, "idle")

    def _wait_for(self, what: str, condition: Callable[[], bool], timeout_s: float) -> None:
        for _ in _ticks(timeout_s):
            if condition():
                return
            for name, process in self._daemons.items():
                if process.poll() is not None:
                    raise ClusterError(f"`{name}` exited {process.returncode} at start\n{self._evidence()}")
        raise ClusterError(f"waited {timeout_s:g} s for {what}\n{self._evidence()}")

    def _evidence(self) -> str:
        """The last lines that each daemon said, without the complaint about PMIx that Debian's build always makes."""
        parts = []
        for log in sorted(self.root.glob("*.out")):
            lines = [line for line in log.read_text(errors="replace").splitlines() if "mpi/pmix" not in line]
            if lines:
                parts.append("\n".join([f"--- {log.name}", *lines[-12:]]))
        return "\n".join(parts)

    def _cancel_jobs(self) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            if not self._jobs():
                return
            self.run("scancel", f"--user={getpass.getuser()}", check=False, timeout_s=10)
            for _ in _ticks(5):
                if not self._jobs():
                    return

    def _jobs(self) -> str:
        return self.run("squeue", "--noheader", "--format=%i", check=False, timeout_s=10).stdout


def _program(name: str) -> str:
    """The path of one of the programs that were found to be here."""
    found = shutil.which(name, path=_SEARCH_PATH)
    assert found is not None, name
    return found


def _field(line: str, key: str) -> str:
    match = re.search(rf"(?:^| ){key}=(\S*)", line)
    return match[1] if match else ""


def _ticks(timeout_s: float) -> Iterator[None]:
    """Every 0.1 s at first, and less often later: each look starts a program, beside jobs that need the processors."""
    began = time.monotonic()
    while (elapsed := time.monotonic() - began) < timeout_s:
        yield
        time.sleep(min(1.0, max(0.1, elapsed / 20)))


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ask politely, then not; the whole process group."""
    for signal_number, patience_s in ((signal.SIGTERM, 3), (signal.SIGKILL, 3)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal_number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience_s)
            return


def _free_ports(count: int) -> list[int]:
    """Ports without a listener, chosen at random so that two clusters starting at once do not meet."""
    found: list[int] = []
    for port in random.sample(_PORTS, len(_PORTS)):
        with socket.socket() as probe:
            try:
                probe.bind(("", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise ClusterError(f"no {count} free ports between {_PORTS.start} and {_PORTS.stop}")
