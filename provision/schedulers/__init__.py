"""The schedulers: one module each with one class, so that code that writes or follows jobs is the same for all."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from typing import Protocol, cast

from provision.errors import ConfigError
from provision.model.batch import Batch, Directive
from provision.model.quoting import Code, directive
from provision.profile.scheduler import SchedulerName
from provision.schedulers.node_kind import QueueLimits
from provision.schedulers.status import JobStatus, RunningJob

TITLES: dict[SchedulerName, str] = {"slurm": "Slurm", "pbs": "PBS", "cobalt": "Cobalt"}


class SchedulerInterface(Protocol):
    """What each scheduler has: names to show to users, directives, argv, and parsers of the output. Some share a default."""

    SUBMIT: str
    """The program that submits a script."""
    QUEUE: str
    """The command that shows a user's jobs."""
    INTERACTIVE: str
    """The command that gives a shell in a job."""
    JOB_ID: str
    """The variable that holds the job's ID inside a job."""
    HOSTS: Code
    """What bash expands to the nodes of a job, in the scheduler's notation; for one word in double quotes."""
    FIRST_NODE: Code
    """What bash expands to the address of a job's first node, on which rank 0 runs."""
    JOB_ID_FORM: str
    """The form of a job's ID, as a pattern."""
    UNKNOWN: str = ""
    """What the status command says if the scheduler does not know the job, or no longer."""
    OUTPUT: str
    """The value of the output directive, below the folder of the job's files."""
    SUBMIT_FOLDER: str
    """The variable that holds the folder from which the job was submitted."""
    COMMENTS_BEHIND: bool = False
    """Whether a directive may be followed by a comment on the same line."""
    BEFORE_SUBMITTING: str | None = None
    """What the user must do with a script before submitting it."""
    STARTS_IN_SUBMIT_FOLDER: bool
    PREFIX: str
    """The word with which directives begin."""
    BENDING: tuple[str, ...]
    """How the variables begin that replace a directive, change an answer, or describe the job in which the shell runs."""
    STEADY: tuple[str, ...] = ()
    """Those of them that say where the scheduler is, or who pays: they stay, the latter unless the script has that option."""
    RUNNING_ARGV: tuple[str, ...]
    """The command that lists the running jobs of all users."""
    QUEUES_ARGV: tuple[str, ...]
    """The command that describes the queues; it fails if the scheduler does not answer."""
    ARRAY: tuple[str, str] | None = None
    """The variables that hold the ID of a job array and the number of the task; None if the scheduler has no arrays."""
    ARRAY_EXAMPLE: str = "1-8"
    """Numbers of the tasks of an array, as an example."""
    CAN_REQUEUE: bool = True
    """Whether a job can ask to be started again when the scheduler ends it before its time limit."""
    REQUEUE: tuple[str, ...] | None = None
    """The command with which a running job puts itself back into the queue, before its ID; None: users may not do that."""

    def output_path(self, jobs: str, name: str) -> str:
        """The value of the output directive, for a job whose files go below the folder `jobs`."""
        return f"{jobs}/{self.OUTPUT.format(name=name)}"

    def directives(self, batch: Batch) -> tuple[Directive, ...]:
        """The directives at the top of a job script."""

    def is_array(self, text: str) -> bool:
        """Whether this text names the tasks of an array in the scheduler's notation."""

    def submit_argv(self, script: str) -> tuple[str, ...]:
        """The command that submits a script."""
        return (self.SUBMIT, script)

    def parse_job_id(self, text: str) -> str | None:
        """The job ID in the output of the submit command."""

    def is_job_id(self, text: str) -> bool:
        """Whether this text has the form of a job ID."""
        return re.fullmatch(self.JOB_ID_FORM, text) is not None

    def cancel_argv(self, *jobs: str) -> tuple[str, ...]:
        """The command that cancels jobs."""
        return ("qdel", *jobs)

    def status_argv(self, job: str) -> tuple[str, ...]:
        """The command that prints the state of a job."""

    def parse_status(self, text: str) -> JobStatus | None:
        """The status in that command's output; None if the scheduler does not know the job."""

    def is_unknown(self, complaint: str) -> bool:
        """Whether the error of that command means that the scheduler does not know the job."""
        return self.UNKNOWN in complaint

    def queued_argv(self, name: str) -> tuple[str, ...]:
        """The command that lists the jobs with this name."""

    def parse_queued(self, text: str, name: str) -> tuple[str, ...]:
        """The IDs of the jobs with this name in that command's output."""
        return tuple(text.split())

    def parse_running(self, text: str) -> tuple[RunningJob, ...]:
        """The jobs in the output of `RUNNING_ARGV`."""

    def parse_queues(self, text: str) -> tuple[QueueLimits, ...]:
        """The queues with their limits; empty if the output of `QUEUES_ARGV` does not contain them."""

    def waiting(self, status: JobStatus) -> str:
        """Why a job has not started, as a phrase."""

    def _lines(
        self, options: list[tuple[str, str]], batch: Batch, quoted: Callable[[str], str] = str
    ) -> tuple[Directive, ...]:
        """The directives with these options and meanings, then those of the site's profile and of the user."""
        options = options + [(o, "required by the site profile") for o in (*batch.scheduler.options, *batch.options)]
        lines = [(quoted(option), meaning) for option, meaning in options]
        lines += [(option, "asked for by `--extra`") for option in batch.extra]
        return tuple(Directive(line=directive(self.PREFIX, option), meaning=meaning) for option, meaning in lines)


# What a job sets for its own devices and files. A job that is submitted from it has others.
DEVICES = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL")
TEMPORARY = ("TMPDIR", "TMP", "TEMP", "TEMPDIR")


def command_environ(scheduler: SchedulerInterface, environ: Mapping[str, str], script: str = "") -> dict[str, str]:
    """The variables for a command of the scheduler, so that the shell changes neither its answer nor the job of `script`.

    sbatch obeys a variable before a directive, and passes the variables of an outer job on, which srun in the new job obeys.
    """
    outer = environ.get(scheduler.JOB_ID)

    def stays(name: str, value: str) -> bool:
        if name in scheduler.STEADY:
            return f" --{name.partition('_')[2].lower()}=" not in script
        if outer and (name in DEVICES or (name in TEMPORARY and outer in value)):
            return False
        return not name.startswith(scheduler.BENDING)

    return {name: value for name, value in environ.items() if stays(name, value)}


def job_here(environ: Mapping[str, str]) -> str | None:
    """The ID of the job in which a process with this environment runs; None if it runs outside a job.

    salloc sets SLURM_JOB_ID in a shell on the login node too; SLURMD_NODENAME is set on compute nodes only.
    """
    slurm = environ.get("SLURM_JOB_ID") if environ.get("SLURMD_NODENAME") else None
    return slurm or environ.get("PBS_JOBID") or environ.get("COBALT_JOBID")


def restarts_here(environ: Mapping[str, str]) -> int:
    """How often the job of a process with this environment was restarted or requeued; only Slurm says it (sbatch(1))."""
    text = environ.get("SLURM_RESTART_COUNT", "")
    return int(text) if text.isdecimal() and len(text) < 10 else 0


def scheduler_for(name: SchedulerName) -> SchedulerInterface:
    """This scheduler.

    Raises:
        ConfigError: the site has no scheduler.
    """
    if name == "none":
        raise ConfigError("the site has no scheduler", hint="add `--site SITE`")
    return cast("SchedulerInterface", importlib.import_module(f"provision.schedulers.{name}").scheduler)
