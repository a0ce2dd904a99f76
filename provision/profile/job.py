"""What batch jobs on an arch request from the scheduler (`[archs.<arch>.job]`)."""

from __future__ import annotations

from dataclasses import dataclass

from provision.profile.patterns import MEMORY, NAME, OPTION, TIME, form
from provision.profile.reader import Reader

CONSTRAINT = form(r"[A-Za-z0-9_&|*()\[\],.:=-]+", "of a constraint, such as `a100` or `gpu&hbm80g`, without blanks")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a batch job on this arch requests. `time` is in the scheduler's notation.

    `exclusive` requests whole nodes. `cpus_per_task` (0: not set) is also passed to the launcher, which does not inherit it.
    `constraint` selects the kind of node: `--constraint` of Slurm, a part of `select` of PBS, `--attrs` of Cobalt.
    `memory` is for one CPU (`8G`; G is GiB, 2³⁰ bytes), also if jobs at the site request it for a node.
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
    """Read `[archs.<arch>.job]`."""
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
