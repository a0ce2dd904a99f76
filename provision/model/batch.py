"""What one job asks a scheduler for, in no scheduler's spelling; `provision.schedulers` spells it."""

from __future__ import annotations

from dataclasses import dataclass

from provision.profile.scheduler import Scheduler


@dataclass(frozen=True, slots=True, kw_only=True)
class Directive:
    """One line that a scheduler reads at the top of a script, and what it means, for the person who reads it too."""

    line: str
    meaning: str

    def __str__(self) -> str:
        return self.line


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One job. `output` is a path as the scheduler wants it (see `output_path` of its room).

    `cpus_per_rank` and `gpus_per_node` are 0 where the job says nothing of them; `memory` is of one CPU. `options` come
    last, so that they win.
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

    @property
    def node_memory(self) -> str | None:
        """The memory that it needs on each node (`64G`); None where the CPUs or their memory are not said."""
        if self.memory is None or not self.cpus_per_rank:
            return None
        return f"{int(self.memory[:-1]) * self.cpus_per_rank * self.ranks_per_node}{self.memory[-1]}"
