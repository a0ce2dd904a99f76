"""A site's batch system, as `[scheduler]` describes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from provision.profile.patterns import OPTION
from provision.profile.reader import Reader

SchedulerName = Literal["none", "slurm", "pbs", "cobalt"]
GpuSpelling = Literal["gres", "gpus", "gpus-per-node", "gpus-per-task", "none"]
# What a site may require of every job, or forbid: the words of `[archs.<arch>.job]` for it.
ASKED = ("account", "partition", "qos", "constraint", "filesystems", "memory", "time")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduler:
    """The batch system, and options that every job of this site needs (an account, say).

    `memory` and `gpus` are how jobs spell them here; `cpu` is what the scheduler counts as one. `required` and
    `forbidden` are words of `[archs.<arch>.job]`. `script_on`: whether a job's script runs on its first node, or on a
    service node whose CPU is of another kind, from which only the launcher reaches the nodes.
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
    """The scheduler of `[scheduler]`; a site without that table has none."""
    scheduler = Scheduler(
        name=table.text("system", "none", choices=("none", "slurm", "pbs", "cobalt")),  # type: ignore[arg-type]
        options=table.texts("options", pattern=OPTION),
        memory=table.text("memory", "none", choices=("none", "per-cpu", "per-node")),  # type: ignore[arg-type]
        gpus=table.text(  # type: ignore[arg-type]
            "gpus", "none", choices=("none", "gres", "gpus", "gpus-per-node", "gpus-per-task")
        ),
        cpu=table.text("cpu", "core", choices=("core", "thread")),  # type: ignore[arg-type]
        required=table.texts("required", choices=ASKED),
        forbidden=table.texts("forbidden", choices=ASKED),
        script_on=table.text("script_on", "node", choices=("node", "service-node")),  # type: ignore[arg-type]
    )
    both = [word for word in scheduler.required if word in scheduler.forbidden]
    if both:
        table.fault("forbidden", f"names `{both[0]}`, which `required` names too")
    table.done()
    return scheduler
