"""A site's batch system (`[scheduler]`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from provision.profile.patterns import OPTION
from provision.profile.reader import Reader

SchedulerName = Literal["none", "slurm", "pbs", "cobalt"]
# The values of `system`; a test compares them with the type.
SCHEDULERS: tuple[SchedulerName, ...] = ("none", "slurm", "pbs", "cobalt")
GpuSpelling = Literal["gres", "gpus", "gpus-per-node", "gpus-per-task", "none"]
# The keys of `[archs.<arch>.job]` that a site can require or forbid.
JOB_KEYS = ("account", "partition", "qos", "constraint", "filesystems", "memory", "time")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduler:
    """The batch system, and the options that every job of this site needs (for example an account).

    `memory` and `gpus` say with which options jobs request them; `cpu` is what the scheduler counts as one CPU.
    `required` and `forbidden` are keys of `[archs.<arch>.job]`. `script_on`: whether a job script runs on the job's first
    node, or on a service node with another kind of CPU, from which only the launcher reaches the nodes.
    """

    name: SchedulerName
    options: tuple[str, ...]
    memory: Literal["per-cpu", "per-node", "none"] = "none"
    gpus: GpuSpelling = "none"
    cpu: Literal["core", "thread"] = "core"
    required: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    script_on: Literal["node", "service-node"] = "node"


def read_scheduler(table: Reader) -> Scheduler:
    """Read `[scheduler]`; a site without that table has no scheduler."""
    scheduler = Scheduler(
        name=table.choice("system", SCHEDULERS, "none"),
        options=table.texts("options", pattern=OPTION),
        memory=table.choice("memory", ("none", "per-cpu", "per-node"), "none"),
        gpus=table.choice("gpus", ("none", "gres", "gpus", "gpus-per-node", "gpus-per-task"), "none"),
        cpu=table.choice("cpu", ("core", "thread"), "core"),
        required=table.texts("required", choices=JOB_KEYS),
        forbidden=table.texts("forbidden", choices=JOB_KEYS),
        script_on=table.choice("script_on", ("node", "service-node"), "node"),
    )
    both = [word for word in scheduler.required if word in scheduler.forbidden]
    if both:
        table.fault("forbidden", f"contains `{both[0]}`, which is also in `required`")
    table.done()
    return scheduler
