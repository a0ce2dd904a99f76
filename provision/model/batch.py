"""What one job requests from a scheduler, in neutral terms, with its shape and its time; `schedulers/` makes directives of it."""

from __future__ import annotations

from dataclasses import dataclass

from provision.model.quoting import Code
from provision.profile.patterns import TIME
from provision.profile.scheduler import Scheduler


@dataclass(frozen=True, slots=True, kw_only=True)
class Directive:
    """One line at the top of a script for the scheduler, and its meaning for the person who reads the script."""

    line: Code
    meaning: str

    def __str__(self) -> str:
        return self.line


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The request of one job. `output` is a path in the scheduler's notation (see `output_path` of its module).

    `mail` is the address for messages about the job, `array` the numbers of its tasks in the scheduler's notation, and `requeue`
    says that the scheduler may end the job and start it again. `extra` are options as a person wrote them.
    `announce_s` seconds before the time limit the scheduler signals the script, which then starts the job again (0: never).
    `cpus_per_rank` and `gpus_per_node` are 0 if the job does not request them; `memory` is for one CPU. `options` come
    last, so that they override the others.
    """

    scheduler: Scheduler
    name: str
    output: str
    nodes: int
    ranks_per_node: int
    time: str
    partition: str | None = None
    constraint: str | None = None
    account: str | None = None
    qos: str | None = None
    exclusive: bool = True
    cpus_per_rank: int = 0
    gpus_per_node: int = 0
    gpu_model: str | None = None
    memory: str | None = None
    filesystems: tuple[str, ...] = ()
    umask: str = "022"
    options: tuple[str, ...] = ()
    mail: str | None = None
    array: str | None = None
    requeue: bool = False
    announce_s: int = 0
    extra: tuple[str, ...] = ()

    @property
    def node_memory(self) -> str | None:
        """The memory that the job needs on each node (`64G`); None if the CPUs or their memory are not known."""
        if self.memory is None or not self.cpus_per_rank:
            return None
        return f"{int(self.memory[:-1]) * self.cpus_per_rank * self.ranks_per_node}{self.memory[-1]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Nodes, ranks on each, the CPUs of each rank as the scheduler counts them (0: not given), and the GPUs of each node.

    `devices` is how many devices each rank trains on at once: GPUs, or parts of a CPU that stand for them.
    """

    nodes: int
    ranks_per_node: int
    cpus_per_rank: int
    gpus_per_node: int
    devices: int = 1

    @property
    def ranks(self) -> int:
        """The number of ranks on all nodes."""
        return self.nodes * self.ranks_per_node


def to_seconds(text: str) -> int:
    """A time limit in seconds, parsed as Slurm does: a number alone is minutes, `a:b` minutes and seconds, `d-h` days and hours.

    Raises:
        ValueError: it does not have one of these forms.
    """
    if not TIME.fullmatch(text):
        raise ValueError(f"{text!r} is not a valid time; use `HH:MM:SS` or minutes")
    days, dash, rest = text.rpartition("-")
    parts = [int(part) for part in rest.split(":")]
    if not dash and len(parts) < 3:  # minutes come first
        parts = [0, *parts]
    hours, minutes, seconds = [*parts, 0, 0][:3]
    return int(days or 0) * 86400 + hours * 3600 + minutes * 60 + seconds


def to_clock(seconds: int) -> str:
    """`HH:MM:SS`, which Slurm, PBS and Cobalt all accept; hours can exceed 24."""
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
