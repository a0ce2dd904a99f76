"""What a scheduler says: its jobs and queues, and the ways in which it starts MPI."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence

from provision.errors import CommandError
from provision.jobs.on_cluster import is_cluster_of
from provision.machine.files.who_may_write import user_name
from provision.machine.programs.run import capture
from provision.profile.arch import Arch, MpiFamily
from provision.profile.scheduler import SchedulerName
from provision.profile.site import Site
from provision.schedulers import TITLES, command_environ, job_here, scheduler_for, slurm
from provision.schedulers.node_kind import Cluster, NodeKind, QueueLimits
from provision.schedulers.status import JobStatus, RunningJob

TIME_LIMIT_S = 30
# What the launchers of each MPI print about themselves.
FAMILY_OF: dict[str, MpiFamily] = {"open mpi": "openmpi", "open-mpi": "openmpi", "openrte": "openmpi", "hydra": "mpich"}


def asking(name: SchedulerName) -> dict[str, str]:
    """The variables of this process for a question to the scheduler."""
    return command_environ(scheduler_for(name), os.environ)


def _ask(
    name: SchedulerName, argv: Sequence[str], *, hint: str, so: str = "", timeout_s: float = 120
) -> tuple[bool, str]:
    """Whether the scheduler knows what it is asked for, and what it prints about that.

    Raises:
        CommandError: this machine does not have the scheduler, or it does not answer; `so` is what follows from that.
    """
    silence = f"{TITLES[name]} does not answer{so}"
    try:
        done = capture(argv, asking(name), timeout_s)
    except CommandError as error:
        raise CommandError(silence, evidence=[error.message, *error.evidence], hint=hint) from error
    if done.returncode and not scheduler_for(name).is_unknown(done.stderr):
        raise CommandError(silence, evidence=done.stderr.splitlines()[:4], hint=hint)
    return done.returncode == 0, done.stdout


def status(job: str, name: SchedulerName) -> JobStatus | None:
    """The status of a job; None if the scheduler does not know the job, or no longer.

    Raises:
        CommandError: the scheduler does not answer.
    """
    scheduler = scheduler_for(name)
    hint = f"`{scheduler.QUEUE}` must work here; then run the same command again"
    known, text = _ask(name, scheduler.status_argv(job), hint=hint)
    return scheduler.parse_status(text) if known else None


def running_jobs(name: SchedulerName) -> tuple[RunningJob, ...]:
    """The jobs of all users that run now; none if the site has no scheduler.

    Raises:
        CommandError: the scheduler does not answer, so nothing is known.
    """
    if name == "none":
        return ()
    scheduler = scheduler_for(name)
    argv = scheduler.RUNNING_ARGV
    so, hint = ", so nothing is known about running jobs", f"run this where `{argv[0]}` works"
    return scheduler.parse_running(_ask(name, argv, hint=hint, so=so)[1])


def known_queues(name: SchedulerName) -> tuple[QueueLimits, ...]:
    """The scheduler's queues with their limits.

    Raises:
        CommandError: this machine does not have the scheduler, or it does not answer.
    """
    scheduler = scheduler_for(name)
    argv = scheduler.QUEUES_ARGV
    return scheduler.parse_queues(_ask(name, argv, hint=f"`{' '.join(argv)}`", timeout_s=TIME_LIMIT_S)[1])


def cluster(name: SchedulerName) -> Cluster:
    """What the scheduler says about queues, nodes and the accounts of this user.

    Raises:
        CommandError: this machine does not have the scheduler, or it does not answer.
    """
    queues = known_queues(name)
    if name != "slurm":
        return Cluster(queues=queues)
    config = slurm.parse_config(_told(slurm.CONFIG_ARGV))
    enforced = "associations" in config.get("AccountingStorageEnforce", "")
    answer = _told(slurm.associations_argv(user_name(os.geteuid()))) if enforced else ""
    return Cluster(
        queues=queues, kinds=node_kinds(), associations=slurm.parse_associations(answer), mpi=config.get("MpiDefault")
    )


def cluster_of(site: Site, *archs: Arch) -> Cluster | None:
    """What the scheduler of this machine says, if it answers and has a queue of one of these archs of the site."""
    names = [name for arch in archs for name in (*(queue.name for queue in arch.queues), arch.job.partition) if name]
    with contextlib.suppress(CommandError):
        there = cluster(site.scheduler.name)
        return there if is_cluster_of(tuple(names), there) else None
    return None


def _told(argv: Sequence[str]) -> str:
    """What a command of Slurm prints; nothing if it fails, or is not there."""
    with contextlib.suppress(CommandError):
        done = capture(argv, asking("slurm"), TIME_LIMIT_S)
        return done.stdout if done.returncode == 0 else ""
    return ""


def node_kinds() -> tuple[NodeKind, ...]:
    """The kinds of nodes that Slurm has; none if this machine does not have Slurm, or it does not answer."""
    return slurm.parse_node_kinds(_told(slurm.NODE_KINDS_ARGV))


def is_login_node() -> bool:
    """Whether Slurm answers here, outside of a job."""
    return job_here(os.environ) is None and bool(node_kinds())


def family_of_launcher(program: str, environ: Mapping[str, str]) -> MpiFamily | None:
    """The MPI to which the `mpiexec` or `mpirun` of this environment belongs; None: it does not say."""
    with contextlib.suppress(CommandError):
        text = capture((program, "--version"), environ, TIME_LIMIT_S).stdout.lower()
        found = [family for word, family in FAMILY_OF.items() if word in text]
        return found[0] if found else None
    return None


def mpi_types() -> tuple[str, ...]:
    """The types that `srun --mpi=` accepts; none if this machine does not have Slurm."""
    with contextlib.suppress(CommandError):
        done = capture(slurm.MPI_TYPES_ARGV, asking("slurm"), TIME_LIMIT_S)
        return slurm.parse_mpi_types(done.stdout + done.stderr)
    return ()
