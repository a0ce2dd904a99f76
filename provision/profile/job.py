"""What a batch job on an arch asks for, as `[archs.<arch>.job]` describes it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from provision.profile.patterns import MEMORY, NAME, OPTION, TIME
from provision.profile.reader import Reader

CONSTRAINT = re.compile(r"[A-Za-z0-9_&|*()\[\],.:=-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a batch job on this arch asks the scheduler for. `time` as the scheduler spells it.

    `exclusive`: whole nodes. `cpus_per_task` (0: unsaid) goes to the launcher too, which does not inherit it.
    `constraint` is the scheduler's word for a kind of node: `--constraint` of Slurm, what stands in `select` of PBS,
    `--attrs` of Cobalt. `memory` is that of one CPU (`8G`), however the site's jobs spell it.
    """

    time: str
    partition: str | None
    constraint: str | None
    account: str | None
    qos: str | None
    exclusive: bool
    cpus_per_task: int
    options: tuple[str, ...]
    filesystems: tuple[str, ...] = ()
    memory: str | None = None


def read_job(table: Reader) -> Job:
    """The job of `[archs.<arch>.job]`."""
    job = Job(
        time=table.text("time", "01:00:00", pattern=TIME),
        partition=table.optional("partition", pattern=NAME),
        constraint=table.optional("constraint", pattern=CONSTRAINT),
        account=table.optional("account", pattern=NAME),
        qos=table.optional("qos", pattern=NAME),
        exclusive=table.flag("exclusive", True),
        cpus_per_task=table.integer("cpus_per_task", 0),
        options=table.texts("options", pattern=OPTION),
        filesystems=table.texts("filesystems", pattern=NAME),
        memory=table.optional("memory", pattern=MEMORY),
    )
    table.done()
    return job
