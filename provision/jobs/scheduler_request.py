"""The request to a scheduler, for every kind of job: the values of the arch's profile, or those given for this job. Pure."""

from __future__ import annotations

from provision.errors import ConfigError
from provision.jobs.limits import refuse
from provision.model.batch import Batch
from provision.model.shape import Shape
from provision.profile.arch import Arch
from provision.profile.job import Job
from provision.profile.patterns import TIME
from provision.profile.site import Site
from provision.schedulers import scheduler_for


def batch_for(
    site: Site,
    arch: Arch,
    shape: Shape,
    *,
    name: str,
    folder: str = ".",
    time: str | None = None,
    account: str | None = None,
    queue: str | None = None,
    exclusive: bool | None = None,
    job: Job | None = None,
) -> Batch:
    """What a job of this shape asks the site's scheduler for. Its output goes to `folder`.

    A value that is None is taken from `job`, or without `job` from `[archs.<arch>.job]` of the profile. `queue` is a QOS
    if the profile says so, or if it names a QOS and no partition, and otherwise a partition. Its constraint replaces the arch's.
    """
    defaults = job or arch.job
    known = next((one for one in arch.queues if one.name == queue), None)
    by_qos = (known is not None and known.qos) or (defaults.qos is not None and defaults.partition is None)
    partition = defaults.partition if by_qos else queue or defaults.partition
    qos = queue or defaults.qos if by_qos else defaults.qos
    of_queue = () if job else (one.constraint for one in arch.queues_of(partition, qos) if one.constraint)
    return Batch(
        scheduler=site.scheduler,
        name=name,
        output=scheduler_for(site.scheduler.name).output_path(folder, name),
        nodes=shape.nodes,
        ranks_per_node=shape.ranks_per_node,
        time=time or defaults.time,
        partition=partition,
        constraint=next(iter(of_queue), defaults.constraint),
        account=account or defaults.account,
        qos=qos,
        exclusive=defaults.exclusive if exclusive is None else exclusive,
        cpus_per_rank=shape.cpus_per_rank,
        gpus_per_node=shape.gpus_per_node,
        gpu_model=arch.gpu.model if arch.gpu else None,
        memory=defaults.memory,
        filesystems=defaults.filesystems,
        umask=site.files.umask,
        options=defaults.options,
    )


def side_batch(
    site: Site, arch: Arch, name: str, *, time: str, cpus: int, account: str | None, queue: str | None
) -> Batch:
    """A job that prepares something. It uses a part of one node, without GPUs if the site has such nodes with the same CPU.

    Raises:
        ConfigError: the site would not accept it.
    """
    if not TIME.fullmatch(time):
        raise ConfigError(f"`--time {time}` is not a valid time", hint="`--time 01:00:00`")
    without_gpus = next((other for other in site.archs if other.gpu is None and other.target == arch.target), arch)
    shape = Shape(nodes=1, ranks_per_node=1, cpus_per_rank=cpus, gpus_per_node=0)
    batch = batch_for(site, without_gpus, shape, name=name, time=time, account=account, queue=queue, exclusive=False)
    refuse(site, without_gpus, batch)
    return batch
