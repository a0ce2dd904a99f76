"""Submit the job of a build, find it in the queue, and query its state."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from provision.errors import CommandError, JobError
from provision.jobs.build_job import Submitter
from provision.machine.disk import write
from provision.machine.run import capture
from provision.machine.search_path import named_folder
from provision.machine.store import Store
from provision.profile.scheduler import SchedulerName
from provision.schedulers import TITLES, scheduler_for
from provision.schedulers.status import JobStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildJob:
    """A job script, its scheduler, and the name of its output and events in `jobs/`."""

    name: str
    text: str
    scheduler: SchedulerName


def submitter(store: Store) -> Submitter:
    """What a job takes over from this machine: the command, the folder of jobs, and the environment."""
    config = named_folder()
    return Submitter(
        tool=(sys.executable, "-I", "-m", "provision"),
        jobs=str(store.layout.jobs),
        environ={**os.environ, **({"PROVISION_CONFIG": config} if config else {})},
        folder=os.path.abspath(os.curdir),
    )


def queued(job: BuildJob) -> str | None:
    """The ID of a waiting or running job with this name, if there is one."""
    scheduler = scheduler_for(job.scheduler)
    done = capture(scheduler.queued_argv(job.name), os.environ)
    return next(iter(scheduler.parse_queued(done.stdout, job.name)), None) if done.returncode == 0 else None


def submit(job: BuildJob, store: Store) -> str:
    """Write the script to `jobs/` and submit it; return the job ID.

    Raises:
        JobError: the scheduler refused the job.
    """
    script = Path(store.layout.jobs) / f"{job.name}.sh"
    write(script, job.text, executable=True, private=True)
    scheduler = scheduler_for(job.scheduler)
    argv = scheduler.submit_argv(str(script))
    done = capture(argv, os.environ)
    number = scheduler.parse_job_id(done.stdout)
    if done.returncode or number is None:
        raise JobError(
            f"{TITLES[job.scheduler]} refused the job",
            state="SUBMIT_FAILED",
            evidence=(done.stderr or done.stdout).strip().splitlines()[:6],
            hint=f"`{shlex.join(argv)}` submits it again; the job's options are under `archs.ARCH.job` in the site profile",
        )
    return number


def status(job: str, name: SchedulerName) -> JobStatus | None:
    """The status of a job; None if the scheduler does not know the job, or no longer.

    Raises:
        CommandError: the scheduler does not answer.
    """
    scheduler = scheduler_for(name)
    done = capture(scheduler.status_argv(job), os.environ)
    if done.returncode and not scheduler.is_unknown(done.stderr):
        raise CommandError(f"{TITLES[name]} does not answer", evidence=done.stderr.splitlines()[:3])
    return scheduler.parse_status(done.stdout) if done.returncode == 0 else None
