"""What batch jobs on an arch request from the scheduler (`[archs.<arch>.job]`)."""

from dataclasses import dataclass
from typing import Annotated

from provision.profile.patterns import MEMORY, Form, Name, Option, Time
from provision.profile.reader import Count

CONSTRAINT = Form(r"[A-Za-z0-9_&|*()\[\],.:=-]+", "of a constraint, such as `a100` or `gpu&hbm80g`, without blanks")
Constraint = Annotated[str, CONSTRAINT]


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
