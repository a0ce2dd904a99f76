"""A site's batch system (`[scheduler]`)."""

from dataclasses import dataclass
from typing import Annotated, Literal

from provision.profile.patterns import Option
from provision.profile.reader import Key, Reader

SchedulerName = Literal["none", "slurm", "pbs", "cobalt"]
GpuSpelling = Literal["none", "gres", "gpus", "gpus-per-node", "gpus-per-task"]
# The keys of `[archs.<arch>.job]` that a site can require or forbid.
JobKey = Literal["account", "partition", "qos", "constraint", "filesystems", "memory", "time"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduler:
    """The batch system, and the options that every job of this site needs (for example an account).

    `memory` and `gpus` say with which options jobs request them; `cpu` is what the scheduler counts as one CPU.
    `required` and `forbidden` are keys of `[archs.<arch>.job]`. `script_on`: whether a job script runs on the job's first
    node, or on a service node with another kind of CPU, from which only the launcher reaches the nodes.
    """

    name: Annotated[SchedulerName, Key("system")] = "none"
    options: tuple[Option, ...] = ()
    memory: Literal["none", "per-cpu", "per-node"] = "none"
    gpus: GpuSpelling = "none"
    cpu: Literal["core", "thread"] = "core"
    required: tuple[JobKey, ...] = ()
    forbidden: tuple[JobKey, ...] = ()
    script_on: Literal["node", "service-node"] = "node"

    def add_faults(self, table: Reader) -> None:
        """Record a key that is both required and forbidden."""
        if both := [word for word in self.required if word in self.forbidden]:
            table.fault("forbidden", f"contains `{both[0]}`, which is also in `required`")
