"""What batch jobs on an arch request (`[archs.<arch>.job]`), and the limits of its queues (`[archs.<arch>.queues.<queue>]`)."""

from dataclasses import dataclass
from typing import Annotated

from provision.profile.patterns import MEMORY, TIME, Form, Name, Option, Time
from provision.profile.reader import Count, Positive, Reader, Via

CONSTRAINT = Form(r"[A-Za-z0-9_&|*()\[\],.:=-]+", "of a constraint, such as `a100` or `gpu&hbm80g`, without blanks")
Constraint = Annotated[str, CONSTRAINT]
# `24: 03:00:00`: jobs of up to 24 nodes have three hours.
UP_TO = Form(r"[1-9][0-9]{0,5}: " + TIME.pattern)
UpTo = Annotated[str, UP_TO]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a batch job on this arch requests. `time` is in the scheduler's notation.

    `exclusive` requests whole nodes. `cpus_per_task` (0: not set) is also passed to the launcher, which does not inherit it.
    `constraint` selects the kind of node: `--constraint` of Slurm, a part of `select` of PBS, `--attrs` of Cobalt.
    `memory` is for one CPU (`8G`; G is GiB, 2³⁰ bytes), also if jobs at the site request it for a node. `least_gpu_use` is
    the percentage of use of its GPUs below which the site cancels a job (0: it does not).
    """

    time: Time = "01:00:00"
    partition: Name | None = None
    constraint: Constraint | None = None
    account: Name | None = None
    qos: Name | None = None
    exclusive: bool = False
    cpus_per_task: Count = 0
    options: tuple[Option, ...] = ()
    filesystems: tuple[Name, ...] = ()
    memory: Annotated[str, MEMORY] | None = None
    least_gpu_use: Count = 0


def no_limit(nodes: int) -> int | None:
    """A limit of a profile, where 0 is none."""
    return nodes or None


def sorted_times(texts: tuple[str, ...]) -> tuple[tuple[int, str], ...]:
    """The numbers of nodes and the time limits of such texts, the fewest nodes first."""
    pairs = (text.split(": ") for text in texts if UP_TO.fullmatch(text))
    return tuple(sorted((int(most), time) for most, time in pairs))


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """The limits of a queue (in Slurm a partition or QOS) for one job of this arch: nodes and time (None: no limit).

    `times` are the limits for jobs of up to this many nodes, the smallest number first; `time` is that of larger jobs. `qos`: it
    is a QOS beside the partition of `[archs.<arch>.job]`, not a partition. `constraint` selects its nodes instead of the
    constraint of `[archs.<arch>.job]`. `run_with` are words before the program of each rank: on nodes in another memory mode,
    `numactl`. `shared`: jobs get parts of its nodes, at a site that gives whole ones.
    """

    name: str
    least_nodes: Positive = 1
    most_nodes: Annotated[int | None, Via(Count, no_limit)] = None
    time: Time | None = None
    constraint: Constraint | None = None
    run_with: tuple[str, ...] = ()
    qos: bool = False
    times: Annotated[tuple[tuple[int, str], ...], Via(tuple[UpTo, ...], sorted_times)] = ()
    shared: bool = False

    def add_faults(self, table: Reader) -> None:
        """Record a largest job that is smaller than the smallest."""
        if self.most_nodes is not None and self.most_nodes < self.least_nodes:
            table.fault("most_nodes", f"is less than `least_nodes` ({self.least_nodes})")

    def time_for(self, nodes: int) -> str | None:
        """The time limit of a job of this many nodes; None: no limit."""
        return next((time for most, time in self.times if nodes <= most), self.time)
