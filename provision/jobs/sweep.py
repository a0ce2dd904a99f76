"""The jobs of a sweep: one program on several numbers of GPUs, or of ranks where a node has no GPUs. Pure.

They are jobs of their own and no array, because every task of an array gets the request of the whole array: one of the
smallest size would hold the nodes of the largest (sbatch(1) of Slurm, `--array`; qsub(1B) of PBS, `-J`; Cobalt has no arrays).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from provision.errors import UsageError
from provision.jobs.user_job import UserJob, nodes_of, shape_of


def sweep_jobs(job: UserJob, sizes: Sequence[int]) -> tuple[UserJob, ...]:
    """The job in each of these sizes: on one node if it fits there, otherwise on whole nodes. The CPUs of a rank stay the same.

    Raises:
        ConfigError: another option gives the size too, or there are no such nodes for one of the sizes.
    """
    given = ",".join(map(str, sizes))
    for option, value in (
        ("--nodes", job.nodes),
        ("--gpus", job.gpus),
        ("--ranks-per-node", job.ranks_per_node),
        ("--array", job.array),
    ):
        if value is not None:
            raise UsageError(
                f"`--sweep` and `{option}` cannot be combined",
                evidence=[f"`--sweep {given}` decides the size of each job, and writes one job for each size"],
                hint=f"leave `{option}` out",
            )
    gpu = nodes_of(job).gpu if job.use_gpu else None
    if gpu is None and job.alone:
        raise UsageError(
            f"`--sweep` of a `{job.kind}` job needs GPUs: without them it is one process on one node",
            evidence=["`--no-gpu` was given" if job.arch.gpu else f"arch `{job.arch.name}` has no GPUs"],
            hint=f"`provision job horovod --sweep {given}` counts ranks",
        )
    node = shape_of(job)
    per_node = gpu.per_node if gpu else node.ranks_per_node
    what = "GPU" if gpu else "rank"
    for size in sizes:
        most = per_node if job.alone else None
        if (most and size > most) or (size > per_node and size % per_node):
            raise UsageError(
                f"`--sweep {given}`: {size} {what}s do not fill whole nodes"
                if most is None
                else f"`--sweep {given}`: a `{job.kind}` job has one node, with {most} {what}{'s' * (most > 1)}",
                evidence=[f"arch `{job.arch.name}` has {per_node} {what}{'s' * (per_node > 1)} on a node"],
                hint=f"`--sweep {_examples(per_node, most)}`",
            )
    name = job.name or f"{job.kind}-{job.arch.name}"
    return tuple(
        replace(
            job,
            name=f"{name}-{size}",
            nodes=max(1, size // per_node),
            gpus=min(size, per_node) if gpu else None,
            ranks_per_node=None if gpu else min(size, per_node),
            cpus=job.cpus if gpu else node.cpus_per_rank,
            record=True,
        )
        for size in sizes
    )


def _examples(per_node: int, most: int | None) -> str:
    """Sizes that this kind of job can have: 1, 2, 4, … up to a node, and whole nodes beyond."""
    inside = [size for size in (1, 2, 4, 8) if size < per_node]
    return ",".join(map(str, [*inside, per_node, *([] if most else [2 * per_node])]))
