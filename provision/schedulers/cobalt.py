"""Cobalt: directives, argv, and parsers of what its programs print.

Sources: the pages of ALCF Theta (2018 to 2023). The form of `qstat -lf` is from general knowledge: not recorded from a
real Cobalt, of which none is left. Cobalt does not copy the script: it must stay where it is, and be executable.
"""

from __future__ import annotations

import re

from provision.model.batch import Batch, Directive
from provision.model.walltime import to_clock, to_seconds
from provision.schedulers.status import JobStatus

SUBMIT = "qsub"
CANCEL = "qdel"
QUEUE = 'qstat -u "$USER"'
JOB_ID = "COBALT_JOBID"
SUBMIT_FOLDER = "PWD"
COMMENTS_BEHIND = False
BEFORE_SUBMITTING: str | None = "`chmod +x` it, and leave it where it is until it has run: Cobalt does not copy it."
STARTS_IN_SUBMIT_FOLDER = True

STATES = {
    "queued": "PENDING",
    "starting": "PENDING",
    "user_hold": "PENDING",
    "admin_hold": "PENDING",
    "dep_hold": "PENDING",
    "dep_fail": "PENDING",
    "running": "RUNNING",
    "exiting": "COMPLETING",
    "killing": "COMPLETING",
    "preempted": "SUSPENDED",
}
REASONS = {
    "user_hold": "held: `qrls` it",
    "admin_hold": "held by an administrator; jobs that name no filesystems are",
    "dep_hold": "waits for another job",
    "dep_fail": "waits for a job that failed: it will never start",
}


def output_path(jobs: str, name: str) -> str:
    """What a job's files begin with: Cobalt puts `.output`, `.error` and `.cobaltlog` behind it."""
    return f"{jobs}/{name}"


def directives(batch: Batch) -> tuple[Directive, ...]:
    """The `#COBALT` lines of a job. Attributes go in one `--attrs`: of two, the second would win."""
    attributes = [*([batch.constraint] if batch.constraint else [])]
    if batch.filesystems:
        attributes.append(f"filesystems={','.join(batch.filesystems)}")
    asked: list[tuple[str, str]] = [
        (f"--jobname {batch.name}", "its name in the queue"),
        (f"-O {batch.output}", "what its .output, .error and .cobaltlog begin with"),
        (f"-n {batch.nodes}", "nodes"),
        (f"-t {to_clock(to_seconds(batch.time))}", "time limit: after it the job is ended"),
    ]
    if batch.partition:
        asked.append((f"-q {batch.partition}", "the queue"))
    if batch.account:
        asked.append((f"-A {batch.account}", "who pays"))
    if attributes:
        asked.append((f"--attrs {':'.join(attributes)}", "the kind of node, and the file systems that it needs"))
    asked += [(option, "as the site's file says") for option in (*batch.scheduler.options, *batch.options)]
    return tuple(Directive(line=f"#COBALT {option}", meaning=meaning) for option, meaning in asked)


def submit_argv(script: str) -> tuple[str, ...]:
    """The command that submits a job script and prints its id."""
    return ("qsub", script)


def parse_job_id(text: str) -> str | None:
    """The job id of `qsub`: a number on a line of its own, after talk of attributes."""
    found = re.search(r"^(\d+)$", text.strip(), re.MULTILINE)
    return found[1] if found else None


def is_job_id(text: str) -> bool:
    """Whether a job may have this id."""
    return text.isdigit()


def status_argv(job: str) -> tuple[str, ...]:
    """The command that tells how a job is; one that has ended is not known any more."""
    return ("qstat", "-l", "-f", job)


def parse_status(text: str) -> JobStatus | None:
    """What `qstat -lf` says; None where it does not know the job."""
    fields = dict(re.findall(r"^\s*(\w+)\s*:\s*(.*?)\s*$", text, re.MULTILINE))
    if "JobID" not in fields or "State" not in fields:
        return None
    state = fields["State"]
    return JobStatus(
        job=fields["JobID"],
        state=STATES.get(state, state.upper()),
        reason=state if state in REASONS else "None",
        time_limit=fields.get("WallTime", ""),
        run_time=fields.get("RunTime", ""),
        nodes=fields.get("Location", "").replace("None", ""),
        native=state,
    )


def is_unknown(said: str) -> bool:
    """Whether the scheduler's complaint says that it does not know the job (any more)."""
    return not said.strip()


def queued_argv(name: str) -> tuple[str, ...]:
    """The command that lists the jobs with their names."""
    return ("qstat", "--header=JobID:JobName")


def parse_queued(text: str, name: str) -> tuple[str, ...]:
    """The ids of the jobs of this name."""
    rows = [line.split() for line in text.splitlines()]
    return tuple(row[0] for row in rows if len(row) == 2 and row[0].isdigit() and row[1] == name)


def queues_argv() -> tuple[str, ...]:
    """The command that shows the queues."""
    return ("qstat", "-Q")


def parse_queues(text: str) -> tuple[str, ...]:
    """Nothing: how Cobalt's table of queues looks is written nowhere that we could find."""
    return ()


def waiting(status: JobStatus) -> str:
    """Why a job has not started, in words."""
    return REASONS.get(status.reason, "")
