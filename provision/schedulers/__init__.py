"""The schedulers: a room each, all of one shape, so that who writes or follows a job need not know which it is."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Protocol, cast

from provision.errors import ConfigError
from provision.model.batch import Batch, Directive
from provision.profile.scheduler import SchedulerName
from provision.schedulers.status import JobStatus

TITLES: dict[SchedulerName, str] = {"slurm": "Slurm", "pbs": "PBS", "cobalt": "Cobalt"}


class SchedulerInterface(Protocol):
    """How one scheduler is scheduler to: words to say to people, directives, argv, and parsers of the answers."""

    SUBMIT: str
    """The program that submits a script."""
    CANCEL: str
    """The program that ends a job."""
    QUEUE: str
    """What a person types to see the queue."""
    JOB_ID: str
    """The variable of a job that holds its id."""
    SUBMIT_FOLDER: str
    """The variable of a job that holds the folder it was submitted from."""
    COMMENTS_BEHIND: bool
    """Whether a comment may stand behind a directive."""
    BEFORE_SUBMITTING: str | None
    """What a person must do with a script first."""
    STARTS_IN_SUBMIT_FOLDER: bool

    def output_path(self, jobs: str, name: str) -> str:
        """What to ask for as a job's output, below the folder `jobs`."""

    def directives(self, batch: Batch) -> tuple[Directive, ...]:
        """The lines at the top of a script."""

    def submit_argv(self, script: str) -> tuple[str, ...]:
        """The command that submits a script."""

    def parse_job_id(self, text: str) -> str | None:
        """The id that submitting printed."""

    def is_job_id(self, text: str) -> bool:
        """Whether a job may have this id."""

    def status_argv(self, job: str) -> tuple[str, ...]:
        """The command that tells how a job is."""

    def parse_status(self, text: str) -> JobStatus | None:
        """What it told."""

    def is_unknown(self, said: str) -> bool:
        """Whether the complaint of that command says that there is no such job."""

    def queued_argv(self, name: str) -> tuple[str, ...]:
        """The command that lists jobs of a name."""

    def parse_queued(self, text: str, name: str) -> tuple[str, ...]:
        """Their ids."""

    def queues_argv(self) -> tuple[str, ...]:
        """The command that lists the queues, and fails where the scheduler does not answer."""

    def parse_queues(self, text: str) -> tuple[str, ...]:
        """Their names; none where the command does not tell them."""

    def waiting(self, status: JobStatus) -> str:
        """Why a job has not started, in words."""


def job_here(environ: Mapping[str, str]) -> str | None:
    """The id of the job that a process with this environment runs in, None where it runs in none.

    salloc gives a job id to a shell on the login node; the node's name is there on nodes only.
    """
    slurm = environ.get("SLURM_JOB_ID") if environ.get("SLURMD_NODENAME") else None
    return slurm or environ.get("PBS_JOBID") or environ.get("COBALT_JOBID")


def scheduler_for(name: SchedulerName) -> SchedulerInterface:
    """The room of this scheduler.

    Raises:
        ConfigError: the site has none.
    """
    if name == "none":
        raise ConfigError("the site has no scheduler", hint="add `--site SITE`")
    return cast("SchedulerInterface", importlib.import_module(f"provision.schedulers.{name}"))
