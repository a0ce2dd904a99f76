"""Cobalt: directives, argv, and parsers of the output of its programs.

Sources: the pages of ALCF Theta (2018 to 2023); qsub of Cobalt 1.0.33, which reads directives only directly behind `#!`, up to
the first other line. The format of `qstat -lf` is from general knowledge: it was not recorded, because no site runs Cobalt
any more. Cobalt does not copy the script: it must stay in place, and be executable.
"""

from __future__ import annotations

import re

from provision.model.batch import Batch, Directive, to_clock, to_seconds
from provision.model.quoting import Code, plain
from provision.schedulers import SchedulerInterface
from provision.schedulers.node_kind import QueueLimits
from provision.schedulers.status import JobStatus, RunningJob, elapsed

OF_JOB = "-$jobid"

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
    "user_hold": "held by its user; `qrls` releases it",
    "admin_hold": "held by an administrator, as happens to jobs that name no file systems",
    "dep_hold": "waits for another job",
    "dep_fail": "waits for a job that failed: it will never start",
}


class _Cobalt(SchedulerInterface):
    SUBMIT = "qsub"
    QUEUE = 'qstat -u "$USER"'
    INTERACTIVE = "qsub -I"
    JOB_ID = "COBALT_JOBID"
    JOB_ID_FORM = "[0-9]{1,15}"
    # Cobalt replaces `$jobid` (qsub(1), `-O`), and appends `.output`, `.error` and `.cobaltlog`. Without the ID, the output of
    # all jobs with one name goes to one file.
    OUTPUT = f"{{name}}{OF_JOB}"
    HOSTS = Code("${COBALT_PARTNAME:-}")  # numbers of nodes: 340-343
    # Cray names the nodes of an XC after these numbers: nid00340.
    FIRST_NODE = Code('$(printf nid%05d "${COBALT_PARTNAME%%[,-]*}")')
    SUBMIT_FOLDER = "PWD"
    BEFORE_SUBMITTING = (
        "Make it executable (`chmod +x`), and leave it in place until the job ends: Cobalt does not copy it."
    )
    STARTS_IN_SUBMIT_FOLDER = True
    PREFIX = "#COBALT"
    BENDING = ("COBALT_JOB", "COBALT_PART", "COBALT_NODE", "ALPS_", "PMI_")
    RUNNING_ARGV = ("qstat", "--header=JobID:User:State:RunTime")
    QUEUES_ARGV = ("qstat", "-Q")
    ARRAY_EXAMPLE = ""
    CAN_REQUEUE = False

    def directives(self, batch: Batch) -> tuple[Directive, ...]:
        """The `#COBALT` lines of a job. All attributes go in one `--attrs`: qsub refuses a second one.

        A path with characters that need quotes is refused: Cobalt splits the line at white space, and reads no quotes.
        """
        attributes = [*([batch.constraint] if batch.constraint else [])]
        if batch.filesystems:
            attributes.append(f"filesystems={','.join(batch.filesystems)}")
        options: list[tuple[str, str]] = [
            (f"--jobname {batch.name}", "the job's name in the queue"),
            (
                f"-O {plain(batch.output.removesuffix(OF_JOB))}{OF_JOB}",
                "prefix of the .output, .error and .cobaltlog files",
            ),
            (f"-n {batch.nodes}", "number of nodes"),
            (f"-t {to_clock(to_seconds(batch.time))}", "time limit, after which the scheduler ends the job"),
        ]
        if batch.partition:
            options.append((f"-q {batch.partition}", "the queue"))
        if batch.account:
            options.append((f"-A {batch.account}", "the account to charge"))
        if attributes:
            options.append(
                (f"--attrs {':'.join(attributes)}", "the kind of node, and the file systems that the job needs")
            )
        if batch.mail:
            options.append((f"--notify {batch.mail}", "who gets messages about the start and the end"))
        return self._lines(options, batch)

    def is_array(self, text: str) -> bool:
        """Always false: Cobalt has no arrays."""
        return False

    def parse_job_id(self, text: str) -> str | None:
        """The job ID in the output of `qsub`: a number alone on a line, after messages about attributes."""
        match = re.search(r"^(\d+)$", text.strip(), re.MULTILINE)
        return match[1] if match else None

    def status_argv(self, job: str) -> tuple[str, ...]:
        """The command that prints the state of a job; Cobalt does not know a job that has ended."""
        return ("qstat", "-l", "-f", job)

    def parse_status(self, text: str) -> JobStatus | None:
        """The status in the output of `qstat -lf`; None if Cobalt does not know the job."""
        fields = dict(_field(line) for line in text.splitlines() if ":" in line)
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
        )

    def is_unknown(self, complaint: str) -> bool:
        """Whether the error of the status command means that the scheduler does not know the job, or no longer."""
        return not complaint.strip()

    def queued_argv(self, name: str) -> tuple[str, ...]:
        """The command that lists the jobs with their names."""
        return ("qstat", "--header=JobID:JobName")

    def parse_queued(self, text: str, name: str) -> tuple[str, ...]:
        """The IDs of the jobs with this name."""
        rows = [line.split() for line in text.splitlines()]
        return tuple(row[0] for row in rows if len(row) == 2 and self.is_job_id(row[0]) and row[1] == name)

    def parse_running(self, text: str) -> tuple[RunningJob, ...]:
        """The jobs in that command's output that do not wait."""
        rows = [line.split() for line in text.splitlines()]
        return tuple(
            RunningJob(job=row[0], user=row[1], seconds=elapsed(row[3]))
            for row in rows
            if len(row) == 4 and self.is_job_id(row[0]) and STATES.get(row[2], "RUNNING") != "PENDING"
        )

    def parse_queues(self, text: str) -> tuple[QueueLimits, ...]:
        """Always empty: we found no description of the format of `qstat -Q`."""
        return ()

    def waiting(self, status: JobStatus) -> str:
        return REASONS.get(status.reason, "")


scheduler = _Cobalt()


def _field(line: str) -> tuple[str, str]:
    """The name and the value of a line of `qstat -lf`."""
    name, _, value = line.partition(":")
    return name.strip(), value.strip()
