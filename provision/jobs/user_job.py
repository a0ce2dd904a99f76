"""A user's job: what was asked for, to its shape and to what its scheduler is asked for. Pure.

What cannot work is refused in `user_job_checks`.
"""

from __future__ import annotations

from dataclasses import dataclass

from provision.jobs.scheduler_request import batch_for
from provision.launch.rank_threads import cpus_of_node
from provision.model.batch import Batch
from provision.model.shape import Shape
from provision.profile.arch import Arch
from provision.profile.container import Runtime
from provision.profile.site import Site
from provision.profile.stack import ONE_PROCESS_PROGRAMS
from provision.profile.strategy import PLUGINS, StrategyName


@dataclass(frozen=True, slots=True, kw_only=True)
class UserJob:
    """What somebody asked for. What is None is by the site: nodes, GPUs and ranks of each, time, runtime, module.

    `script` is absolute, or stands in the folder that the job is submitted from, or begins with a `$VARIABLE` that the
    modules set (a plug-in's own example); `command` is how the file was made.
    """

    kind: StrategyName
    site: Site
    arch: Arch
    command: str
    module: str
    modulepath: str
    script: str = "train.py"
    arguments: tuple[str, ...] = ()
    nodes: int | None = None
    gpus: int | None = None
    ranks_per_node: int | None = None
    cpus: int | None = None
    use_gpu: bool = True
    runtime: Runtime | None = None
    image: str | None = None
    venv: str | None = None
    time: str | None = None
    account: str | None = None
    queue: str | None = None
    data: str | None = None
    resume: str | None = None
    stage_in: str | None = None
    watch_gpus: bool = False
    record: bool = False

    @property
    def alone(self) -> bool:
        """Whether the job is one process, however many devices it uses."""
        return self.kind in ONE_PROCESS_PROGRAMS


def shape_of(job: UserJob) -> Shape:
    """The shape of a job. A shape that its kind cannot have is refused in `user_job_checks`."""
    arch, gpu = job.arch, job.arch.gpu if job.use_gpu else None
    gpus = job.gpus or (0 if gpu is None else 1 if job.kind == "single" else gpu.per_node)
    if job.alone:
        ranks = 1
    elif gpus:
        ranks = job.ranks_per_node or gpus
    else:
        ranks = job.ranks_per_node or (arch.node.sockets if arch.node else arch.proof.ranks_per_node)
    return Shape(
        nodes=job.nodes or (1 if job.alone else arch.proof.nodes),
        ranks_per_node=ranks,
        cpus_per_rank=job.cpus or _cpus(job, ranks, gpus),
        gpus_per_node=gpus,
        devices=max(1, gpus // ranks),
    )


def _cpus(job: UserJob, ranks: int, gpus: int) -> int:
    """CPUs of a rank: those that belong to its GPUs, or its share of the node."""
    per_gpu, whole = job.arch.job.cpus_per_task, cpus_of_node(job.site, job.arch)
    if job.arch.gpu is not None:
        per_gpu = per_gpu or whole // job.arch.gpu.per_node
        return per_gpu * max(1, gpus // ranks)
    return per_gpu or whole // ranks


def runtime_of(job: UserJob) -> Runtime:
    """How TensorFlow is run: what was asked for, or the first of the site's runtimes that this arch has."""
    if job.kind in PLUGINS:
        return "modules"
    usable = [runtime for runtime in job.site.runtimes if runtime != "modules" or job.arch.provided]
    return job.runtime or (usable or job.site.runtimes)[0]


def unstaged(job: UserJob, shape: Shape) -> str | None:
    """What to tell of a job of so many nodes that its data are due on the burst buffer, if they are not."""
    files = job.site.files
    if job.stage_in is not None or not files.needs_burst_buffer(shape.nodes):
        return None
    return (
        f"{shape.nodes} nodes read the data from the parallel file system: from {files.burst_buffer_from} nodes on "
        "they belong on the burst buffer, `--stage-in FOLDER`"
    )


def batch_of(job: UserJob, shape: Shape) -> Batch:
    """What the job asks its scheduler for."""
    name = f"{job.kind}-{job.arch.name}"
    return batch_for(job.site, job.arch, shape, name=name, time=job.time, account=job.account, queue=job.queue)
