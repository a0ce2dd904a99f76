"""A job against what the scheduler of this machine says: its queues, their nodes, and who may use them. Pure.

The profile may say less, or be older. `doctor` compares the jobs of builds, `job` a user's job, and `job lint` a script.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from provision.errors import Fault
from provision.jobs.limits import beyond, says
from provision.model.batch import Batch
from provision.schedulers import TITLES
from provision.schedulers.node_kind import Cluster, NodeKind, QueueLimits
from provision.wording import count, nearest_name

MIB = {"M": 1, "G": 1024, "T": 1024**2}


def is_cluster_of(names: tuple[str, ...], cluster: Cluster) -> bool:
    """Whether this scheduler has one of a profile's queues, so that a job of that profile is meant for it."""
    return not names or bool({queue.name for queue in cluster.queues} & {*names})


def misfits(batch: Batch, cluster: Cluster) -> tuple[Fault, ...]:
    """Why the scheduler would refuse or never start this job; `accepted` is the nearest value that fits."""
    title = TITLES[batch.scheduler.name]
    queue = next(
        (one for one in cluster.queues if one.name == batch.partition or (one.default and not batch.partition)), None
    )
    if queue is not None:
        return (*_limits(batch, queue), *_users(batch, queue, cluster), *_nodes(batch, queue, cluster))
    if not cluster.queues or batch.partition is None or "," in batch.partition or says(batch, "partition", typed=False):
        return _users(batch, QueueLimits(name=""), cluster)
    names = [one.name for one in cluster.queues]
    message = f"{title} has no {'partition' if title == 'Slurm' else 'queue'} `{batch.partition}`"
    near = nearest_name(batch.partition, names)
    return (_misfit("partition", message, f"it has {', '.join(names)}", accepted=near),)


def _source(batch: Batch, queue: str) -> str:
    """The command that shows what the scheduler says about a queue."""
    if batch.scheduler.name == "slurm":
        return f"`scontrol show partition {queue}`, `sinfo --partition={queue} --Node --long`"
    return f"`qstat -Q -f {queue}`"


def _misfit(subject: str, message: str, evidence: str, *, accepted: object = None) -> Fault:
    option = "queue" if subject == "partition" else subject
    hint = f"`--{option} {accepted}`" if accepted is not None else f"another `--{option}`"
    value = None if accepted is None else str(accepted)
    return Fault("limit", subject, message, evidence=(evidence,), hint=hint, accepted=value)


def _limits(batch: Batch, queue: QueueLimits) -> Iterator[Fault]:
    """Time and nodes. Those of a QOS can replace the limits of its partition (sacctmgr(1), `PartitionTimeLimit`)."""
    source = _source(batch, queue.name)
    if not queue.opens:
        yield _misfit("partition", f"`{queue.name}` takes or starts no jobs now", source)
    if batch.qos or says(batch, "qos"):
        return
    time_s = None if says(batch, "time", typed=False) else queue.time_s
    limits = beyond(batch, f"`{queue.name}`", most=queue.most_nodes, least=queue.least_nodes, time_s=time_s)
    for subject, _, message, fits in limits:
        yield _misfit(subject, message, source, accepted=fits)


def _users(batch: Batch, queue: QueueLimits, cluster: Cluster) -> tuple[Fault, ...]:
    """The account and the QOS: those that the queue lets in, and those of this user."""
    found = []
    mine = [name for name, _ in cluster.associations]
    of_account = [qos for name, qos in cluster.associations if batch.account in (None, name)]
    allowed = tuple(dict.fromkeys(name for names in of_account for name in names))
    for subject, value, accepted, whose in (
        ("account", batch.account, queue.accounts, f"of `{queue.name}`"),
        ("account", batch.account, tuple(mine), "of yours"),
        ("qos", batch.qos, queue.qos, f"of `{queue.name}`"),
        ("qos", batch.qos, allowed, "of yours"),
    ):
        if value is not None and accepted and value.lower() not in [name.lower() for name in accepted]:
            message = f"`{value}` is not {'an account' if subject == 'account' else 'a QOS'} {whose}"
            near = nearest_name(value, accepted)
            found.append(_misfit(subject, message, f"there are {', '.join(accepted)}", accepted=near))
    return tuple(found)


def _nodes(batch: Batch, queue: QueueLimits, cluster: Cluster) -> Iterator[Fault]:
    """The nodes of the queue that the job asks for: there must be enough of one kind, each with all that a node must have."""
    kinds = [kind for kind in cluster.kinds if kind.partition == queue.name]
    if not kinds:
        return
    here = f"the nodes of `{queue.name}`"
    if batch.constraint and not says(batch, "constraint", typed=False):
        features = sorted({feature for kind in kinds for feature in kind.features})
        words = re.findall(r"[A-Za-z_][A-Za-z0-9_.:=-]*", batch.constraint)
        unknown = [word for word in words if word not in features]
        simple = not re.search(r"[|\[\]*()]", batch.constraint)
        fitting = [kind for kind in kinds if not simple or {*words} <= {*kind.features}]
        if unknown or not fitting:
            wrong = unknown[0] if unknown else batch.constraint
            near = nearest_name(wrong, features)
            accepted = batch.constraint.replace(wrong, near) if unknown and near else None
            evidence = f"their features are {', '.join(features)}" if features else "they have no features"
            yield _misfit("constraint", f"{here} have no feature `{wrong}`", evidence, accepted=accepted)
            return
        kinds = fitting
    total = sum(kind.count for kind in kinds)
    if total and batch.nodes > total:
        message = f"the job has {count(batch.nodes, 'node')}, but `{queue.name}` has {total} of these"
        yield _misfit("nodes", message, _source(batch, queue.name), accepted=total)
    lacks = [[*_lacks(batch, kind)] for kind in kinds]
    if all(lacks):
        for subject, asked, most in min(lacks, key=len):
            message = f"the job asks for {asked} on each node, but {here} have {most}"
            yield _misfit(subject, message, _source(batch, queue.name))


def _lacks(batch: Batch, kind: NodeKind) -> Iterator[tuple[str, str, str]]:
    """What a node of this kind has too little of: the thing, how much the job asks for, and how much there is."""
    model = (batch.gpu_model or "").lower()
    gpus = sum(number for name, number in kind.gpu_counts if not model or name == model)
    if batch.scheduler.gpus != "none" and batch.gpus_per_node > gpus:
        there = " and ".join(f"{number} {name}".strip() for name, number in kind.gpu_counts) or "none"
        yield "gpus", count(batch.gpus_per_node, f"{model} GPU".strip()), there
    cpus = max(1, batch.cpus_per_rank) * batch.ranks_per_node
    if cpus > kind.threads:
        yield "cpus", count(cpus, "CPU"), str(kind.threads)
    memory = batch.node_memory if batch.scheduler.memory != "none" else None
    if memory is not None and int(memory[:-1]) * MIB[memory[-1]] > kind.memory_mib:
        yield "memory", f"{memory} of memory", f"{kind.memory_mib} MiB"
