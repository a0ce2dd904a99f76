"""What a scheduler says about its queues, their nodes, and who may use them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeKind:
    """Nodes of one partition that are alike: cores and threads are of the whole node, `memory_mib` is in MiB.

    `default` says whether jobs without a partition go there. `gpu_counts` are the scheduler's names of the GPUs, in lower case
    (empty without a name), with their number on a node. `count` is the number of such nodes; 0: not known.
    `time` is the partition's limit in seconds (None: no limit), and `whole` says that its jobs get whole nodes.
    """

    partition: str
    default: bool
    sockets: int
    cores: int
    threads: int
    memory_mib: int
    gpu_counts: tuple[tuple[str, int], ...]
    features: tuple[str, ...]
    count: int = 0
    time: int | None = None
    whole: bool = False

    @property
    def memory_gib(self) -> int:
        """The memory in whole GiB."""
        return self.memory_mib // 1024

    @property
    def gpus(self) -> int:
        """The GPUs of a node, of every name."""
        return sum(number for _, number in self.gpu_counts)

    @property
    def gpu_type(self) -> str:
        """The name of the first GPUs; empty without one."""
        return self.gpu_counts[0][0] if self.gpu_counts else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLimits:
    """A queue, in Slurm a partition, and what it accepts. None, or an empty tuple: everything.

    `opens` says whether the queue takes and starts jobs. `qos` and `accounts` are those that may use it.
    """

    name: str
    default: bool = False
    opens: bool = True
    time_s: int | None = None
    least_nodes: int = 0
    most_nodes: int | None = None
    qos: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """What the scheduler of this machine says. An empty tuple: it says nothing about that.

    `associations` are the accounts of the user, each with the QOS that the user may name with it. `mpi` is the type of MPI that
    srun starts without `--mpi=`.
    """

    queues: tuple[QueueLimits, ...]
    kinds: tuple[NodeKind, ...] = ()
    associations: tuple[tuple[str, tuple[str, ...]], ...] = ()
    mpi: str | None = None
