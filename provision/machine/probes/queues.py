"""What a scheduler has: its queues, and the ways in which it starts MPI."""

from __future__ import annotations

import os

from provision.errors import CommandError
from provision.machine.programs.run import capture
from provision.profile.scheduler import SchedulerName
from provision.schedulers import TITLES, job_here, scheduler_for, slurm
from provision.schedulers.node_kind import NodeKind

TIME_LIMIT_S = 30


def known_queues(name: SchedulerName) -> tuple[str, ...]:
    """The names of the scheduler's queues.

    Raises:
        CommandError: this machine does not have the scheduler, or it does not answer.
    """
    scheduler = scheduler_for(name)
    argv = scheduler.queues_argv()
    done = capture(argv, os.environ, timeout_s=TIME_LIMIT_S)
    if done.returncode:
        raise CommandError(
            f"{TITLES[name]} does not answer", evidence=done.stderr.splitlines()[:4], hint=f"`{' '.join(argv)}`"
        )
    return scheduler.parse_queues(done.stdout)


def node_kinds() -> tuple[NodeKind, ...]:
    """The kinds of nodes that Slurm has; none if this machine does not have Slurm, or it does not answer."""
    try:
        done = capture(slurm.node_kinds_argv(), os.environ, timeout_s=TIME_LIMIT_S)
    except CommandError:
        return ()
    return slurm.parse_node_kinds(done.stdout) if done.returncode == 0 else ()


def is_login_node() -> bool:
    """Whether Slurm answers here, outside of a job."""
    return job_here(os.environ) is None and bool(node_kinds())


def mpi_types_here() -> tuple[str, ...]:
    """The types that `srun --mpi=` accepts; none if this machine does not have Slurm, or it does not answer."""
    try:
        return known_mpi_types()
    except CommandError:
        return ()


def known_mpi_types() -> tuple[str, ...]:
    """The types that `srun --mpi=` accepts.

    Raises:
        CommandError: this machine does not have Slurm.
    """
    done = capture(slurm.mpi_types_argv(), os.environ, timeout_s=TIME_LIMIT_S)
    return slurm.parse_mpi_types(done.stdout + done.stderr)
