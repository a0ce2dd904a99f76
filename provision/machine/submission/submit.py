"""Submit the job of a build, find it in the queue, and query its state."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from pathlib import Path

from provision.errors import CommandError, ConfigError, JobError
from provision.jobs.build_job import BuildScript, Submitter
from provision.machine.configuration.search_path import named_folder
from provision.machine.files.disk import write
from provision.machine.probes.ask_scheduler import asking, status
from provision.machine.programs.run import capture
from provision.machine.root.store import Store
from provision.machine.submission.job_settings import read_settings, write_settings
from provision.machine.terminal.console import say
from provision.model.child_environ import Needs
from provision.profile.scheduler import SchedulerName
from provision.schedulers import TITLES, command_environ, scheduler_for

# How long a file of settings stays if no job reads it. A job whose file is gone uses the settings of its own environment.
UNUSED_S = 30 * 86400.0


def submitter(store: Store) -> Submitter:
    """What a job takes over from this machine: the command, the folder of jobs, and the environment."""
    config = named_folder()
    return Submitter(
        tool=(sys.executable, "-I", "-m", "provision"),
        jobs=str(store.jobs),
        environ={**os.environ, **({"PROVISION_CONFIG": config} if config else {})},
        folder=os.path.abspath(os.curdir),
    )


def queued(job: BuildScript) -> str | None:
    """The ID of a waiting or running job with this name, if there is one."""
    return next(iter(_queued(job.name, job.site.scheduler.name) or ()), None)


def _queued(job: str, name: SchedulerName) -> tuple[str, ...] | None:
    """The IDs of the waiting and running jobs with this name; None if the scheduler does not say."""
    scheduler = scheduler_for(name)
    done = capture(scheduler.queued_argv(job), asking(name))
    return scheduler.parse_queued(done.stdout, job) if done.returncode == 0 else None


def submit(job: BuildScript, store: Store) -> str:
    """Write the script, and the settings that it reads, to `jobs/` and submit it; return the job ID.

    Raises:
        JobError: the scheduler refused the job.
    """
    store.make_jobs()
    remove_left_settings(store, job.site.scheduler.name)
    keep_settings(job)
    script = store.jobs / f"{job.name}.sh"
    write(script, job.text, executable=True, private=True)
    try:
        number = _submit(
            script,
            job.site.scheduler.name,
            "change the job's options under `archs.ARCH.job` in the site profile",
            "index",
        ) or queued(job)
    except JobError:
        if job.settings_file:
            Path(job.settings_file).unlink(missing_ok=True)
        raise
    if number is None:
        raise _without_number(job.site.scheduler.name)
    keep_settings(job, number)
    return number


def submit_script(text: str, name: str, scheduler: SchedulerName) -> tuple[str, str]:
    """Write a user's script to the working directory and submit it; return the job ID, and the name of the file.

    The name has a hash of the text, so the file replaces no other, and a job that waits keeps its script.

    Raises:
        JobError: the scheduler refused the job.
        StoreError: the file cannot be written.
    """
    file = f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}.sh"
    path = Path(os.path.abspath(os.curdir), file)
    there = path.exists()
    write(path, text, executable=True)
    try:
        number = _submit(path, scheduler, "change the options of the command", "everything")
    except JobError:
        if not there:
            path.unlink(missing_ok=True)
        raise
    if number is None:
        raise _without_number(scheduler)
    return number, file


def _submit(script: Path, name: SchedulerName, hint: str, needs: Needs) -> str | None:
    """Submit the script from the working directory, where the job then starts; the job ID, if the output has one.

    Slurm gives the job all variables that `sbatch` has: `needs`, and where the scheduler is, decide which these are.

    Raises:
        JobError: the scheduler refused the job.
    """
    scheduler = scheduler_for(name)
    environ = command_environ(scheduler, os.environ, script.read_text(encoding="utf-8", errors="replace"))
    left_out = [variable for variable in os.environ if variable.startswith("SBATCH_") and variable not in environ]
    if left_out:
        say(f"note: the script decides, not {' '.join(sorted(left_out))} of this shell")
    done = capture(scheduler.submit_argv(str(script)), environ, folder=os.path.abspath(os.curdir), needs=needs)
    if done.returncode:
        raise JobError(
            f"{TITLES[name]} refused the job",
            state="SUBMIT_FAILED",
            evidence=(done.stderr or done.stdout).strip().splitlines()[:6],
            hint=f"{hint}, then run the same command again",
        )
    return scheduler.parse_job_id(done.stdout) or scheduler.parse_job_id(done.stderr)


def _without_number(name: SchedulerName) -> JobError:
    """The error of a job that was submitted, but by a program of the site that prints no ID."""
    scheduler = scheduler_for(name)
    return JobError(
        f"the job was submitted, but `{scheduler.SUBMIT}` printed no job ID",
        state="UNKNOWN",
        evidence=[
            f"`{scheduler.SUBMIT}` ended with code 0: it may be a program of the site in place of {TITLES[name]}'s"
        ],
        hint=f"`{scheduler.QUEUE}` lists your jobs, then `provision job follow ID`",
    )


def keep_settings(job: BuildScript, number: str | None = None) -> None:
    """Write the settings that the job reads, if it needs any; with `number`, the ID of the job, if it still needs them.

    Raises:
        StoreError: the file cannot be written.
    """
    if job.settings_file and (number is None or Path(job.settings_file).exists()):
        write_settings(Path(job.settings_file), dict(job.settings), number)


def requeue(job: str, name: SchedulerName) -> str | None:
    """Put a running job back into the queue; None, or what the scheduler says if it does not."""
    argv = scheduler_for(name).REQUEUE
    if argv is None:
        return f"{TITLES[name]} does not let users do that"
    try:
        done = capture((*argv, job), asking(name))
    except CommandError as error:
        return error.message
    return (done.stderr or done.stdout).strip() or f"exit code {done.returncode}" if done.returncode else None


def remove_left_settings(store: Store, name: SchedulerName) -> None:
    """Remove the settings of jobs that have ended without removing them, because they were cancelled or killed."""
    for path in sorted(store.jobs.glob("*.settings")):
        try:
            if _is_left(path, name):
                path.unlink(missing_ok=True)
        except (FileNotFoundError, ConfigError, CommandError):
            continue  # its job removed it meanwhile, it belongs to another user, or the scheduler does not answer


def _is_left(path: Path, name: SchedulerName) -> bool:
    """Whether no job needs these settings: the last job that read them has ended, or none did for `UNUSED_S`, and none waits.

    Raises:
        FileNotFoundError, ConfigError: as of `read_settings`.
        CommandError: the scheduler does not answer.
    """
    job, _ = read_settings(path)
    if job:
        now = status(job, name)
        ended = now is None or now.ended
    else:
        ended = time.time() - path.stat().st_mtime > UNUSED_S
    # A user may have submitted the script twice: the second job needs the file, too.
    return ended and _queued(path.name.removesuffix(".settings").removesuffix(".submitted"), name) == ()
