"""The request to a scheduler, for every kind of job, and what the jobs that prepare a container share. Pure.

It has the values of the arch's profile, or those that were given for this job.
"""

from __future__ import annotations

from dataclasses import dataclass

from provision.errors import ConfigError
from provision.jobs.limits import refuse
from provision.knowledge.targets import family_of
from provision.model.batch import Batch, Shape
from provision.profile.arch import Arch, Job
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
    if the profile says so, or if it names a QOS and no partition, and otherwise a partition, with the arch's QOS only if the site
    requires one. Its constraint and whether it gives whole nodes replace what the arch says.
    """
    defaults = job or arch.job
    known = next((one for one in arch.queues if one.name == queue), None)
    by_qos = (known is not None and known.qos) or (defaults.qos is not None and defaults.partition is None)
    partition = defaults.partition if by_qos else queue or defaults.partition
    qos = queue or defaults.qos if by_qos else defaults.qos
    if queue and not by_qos and "qos" not in site.scheduler.required:
        qos = None
    queues = () if job else arch.queues_of(partition, qos)
    whole = defaults.exclusive and not any(one.shared for one in queues)
    return Batch(
        scheduler=site.scheduler,
        name=name,
        output=scheduler_for(site.scheduler.name).output_path(folder, name),
        nodes=shape.nodes,
        ranks_per_node=shape.ranks_per_node,
        time=time or defaults.time,
        partition=partition,
        constraint=next((one.constraint for one in queues if one.constraint), defaults.constraint),
        account=account or defaults.account,
        qos=qos,
        exclusive=whole if exclusive is None else exclusive,
        cpus_per_rank=shape.cpus_per_rank,
        gpus_per_node=shape.gpus_per_node,
        gpu_model=arch.gpu.model if arch.gpu else None,
        memory=defaults.memory,
        filesystems=defaults.filesystems,
        umask=site.files.umask,
        options=defaults.options,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SideJob:
    """What a user asked for of a job that prepares a container; `command` is the command that wrote it."""

    site: Site
    arch: Arch
    command: str
    time: str = "01:00:00"
    """Some gigabytes are downloaded and installed, which takes minutes; the limit leaves time for a slow network."""
    account: str | None = None
    queue: str | None = None


def side_batch(job: SideJob, name: str, cpus: int) -> Batch:
    """A job that prepares a container. It uses a part of one node, without GPUs if the site has such nodes of the same family.

    Otherwise it requests one GPU: a site with other nodes keeps the partitions of its GPUs for jobs that request them.

    Raises:
        ConfigError: the site would not accept it.
    """
    site, arch = job.site, job.arch
    if not TIME.fullmatch(job.time):
        raise ConfigError(f"`--time {job.time}` is not a valid time", hint="`--time 01:00:00`")
    without_gpus = [other for other in site.archs if other.gpu is None]
    family = family_of(arch.target, arch.target)
    nodes = next((other for other in without_gpus if family_of(other.target, arch.target) == family), arch)
    shape = Shape(nodes=1, ranks_per_node=1, cpus_per_rank=cpus, gpus_per_node=1 if without_gpus and nodes.gpu else 0)
    batch = batch_for(
        site,
        nodes,
        shape,
        name=f"{name}-{arch.name}",
        time=job.time,
        account=job.account,
        queue=job.queue,
        exclusive=False,
    )
    refuse(site, nodes, batch)
    return batch
