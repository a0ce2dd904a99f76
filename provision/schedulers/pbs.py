"""PBS Pro (and OpenPBS): directives, argv, and parsers of what its programs print.

Sources: qsub(1B) and qstat(1B) of PBS Professional 2022; the pages of ALCF Polaris (2026). Not recorded from a real PBS.
PBS copies the script when it is submitted, starts it in the home folder, and with umask 0077 (seen on Polaris).
"""

from __future__ import annotations

import re

from provision.model.batch import Batch, Directive
from provision.model.walltime import to_clock, to_seconds
from provision.schedulers.status import JobStatus

SUBMIT = "qsub"
CANCEL = "qdel"
QUEUE = 'qstat -u "$USER"'
JOB_ID = "PBS_JOBID"
SUBMIT_FOLDER = "PBS_O_WORKDIR"
COMMENTS_BEHIND = False
BEFORE_SUBMITTING: str | None = None
STARTS_IN_SUBMIT_FOLDER = False

# job_state of qstat(1B): the letter, and Slurm's word for it.
STATES = {
    "Q": "PENDING",
    "H": "PENDING",
    "W": "PENDING",
    "T": "PENDING",
    "M": "PENDING",
    "R": "RUNNING",
    "E": "COMPLETING",
    "S": "SUSPENDED",
    "U": "SUSPENDED",
    "B": "RUNNING",
}
# Exit_status below 0 is PBS's own, of 256 and more a signal (Administrator's Guide, "Job Exit Status Codes").
KILLED_BY_WALLTIME = -29
KILLED_BY_MEMORY = (-27, -28)


def output_path(jobs: str, name: str) -> str:
    """Where a job's output goes: into a folder, under the job's id (`123.server.OU`); PBS puts no id into a name."""
    return f"{jobs}/"


def directives(batch: Batch) -> tuple[Directive, ...]:
    """The `#PBS` lines of a job: whole chunks, one a node."""
    chunk = [f"select={batch.nodes}"]
    if batch.constraint:
        chunk.append(batch.constraint)
    if batch.gpus_per_node and batch.scheduler.gpus != "none":
        chunk.append(f"ngpus={batch.gpus_per_node}")
    if batch.node_memory and batch.scheduler.memory == "per-node":
        chunk.append(f"mem={batch.node_memory.lower()}b")
    asked: list[tuple[str, str]] = [
        (f"-N {batch.name}", "its name in the queue"),
        (f"-o {batch.output}", "what it prints: a file of this folder, named by the job's id"),
        ("-j oe", "errors there too"),
        (f"-l {':'.join(chunk)}", "nodes, and their kind"),
        (f"-l place=scatter{':excl' if batch.exclusive else ''}", "each on a node of its own"),
        (f"-l walltime={to_clock(to_seconds(batch.time))}", "time limit: after it the job is ended"),
        (f"-W umask={batch.umask}", "others may read what it prints: PBS starts jobs with 0077"),
    ]
    if batch.partition:
        asked.append((f"-q {batch.partition}", "the queue"))
    if batch.account:
        asked.append((f"-A {batch.account}", "who pays"))
    if batch.filesystems:
        asked.append((f"-l filesystems={':'.join(batch.filesystems)}", "the file systems that it needs"))
    asked += [(option, "as the site's file says") for option in (*batch.scheduler.options, *batch.options)]
    return tuple(Directive(line=f"#PBS {option}", meaning=meaning) for option, meaning in asked)


def submit_argv(script: str) -> tuple[str, ...]:
    """The command that submits a job script and prints its id."""
    return ("qsub", script)


def parse_job_id(text: str) -> str | None:
    """The job id of `qsub`: `123.server`."""
    found = re.search(r"^(\d+\.[A-Za-z0-9.-]+)$", text.strip(), re.MULTILINE)
    return found[1] if found else None


def is_job_id(text: str) -> bool:
    """Whether a job may have this id."""
    return re.fullmatch(r"\d+(\.[A-Za-z0-9.-]+)?", text) is not None


def status_argv(job: str) -> tuple[str, ...]:
    """The command that tells how a job is, also one that has ended (while the server keeps its history)."""
    return ("qstat", "-x", "-f", job)


def parse_status(text: str) -> JobStatus | None:
    """What `qstat -xf` says; None where it does not know the job."""
    job = re.search(r"^Job Id:\s*(\S+)", text, re.MULTILINE)
    if job is None:
        return None
    fields: dict[str, str] = dict(re.findall(r"^ {4}(\S+) = (.*)$", text.replace("\n\t", ""), re.MULTILINE))
    letter, code = fields.get("job_state", ""), int(fields.get("Exit_status", "0"))
    state: str = STATES.get(letter, letter)
    if letter in ("F", "X"):
        state = _ended(code, "Exit_status" in fields, fields.get("comment", ""))
    signal = code - 256 if code > 256 else 0
    return JobStatus(
        job=job[1],
        state=state,
        reason=fields.get("comment", "None"),
        exit_code=f"0:{signal}" if signal else f"{code}:0",
        output=fields.get("Output_Path", "").partition(":")[2],
        time_limit=fields.get("Resource_List.walltime", ""),
        run_time=fields.get("resources_used.walltime", ""),
        nodes="+".join(dict.fromkeys(re.findall(r"(?:^|\+)([^/+]+)/", fields.get("exec_host", "")))),
        native=f"{letter} (Exit_status {code})" if letter in ("F", "X") else letter,
    )


def _ended(code: int, ran: bool, comment: str) -> str:
    if not ran:
        return "CANCELLED"
    if code == KILLED_BY_WALLTIME or "walltime" in comment:
        return "TIMEOUT"
    if code in KILLED_BY_MEMORY:
        return "OUT_OF_MEMORY"
    return "FAILED" if code else "COMPLETED"


def is_unknown(said: str) -> bool:
    """Whether the scheduler's complaint says that it does not know the job (any more)."""
    return "Unknown Job Id" in said


def queued_argv(name: str) -> tuple[str, ...]:
    """The command that lists the jobs of this name, waiting or running."""
    return ("qselect", "-N", name, "-s", "HQRW")


def parse_queued(text: str, name: str) -> tuple[str, ...]:
    """The ids of the jobs of this name."""
    return tuple(text.split())


def queues_argv() -> tuple[str, ...]:
    """The command that lists the queues, each with a line `Queue: NAME` (qstat(1B))."""
    return ("qstat", "-Q", "-f")


def parse_queues(text: str) -> tuple[str, ...]:
    """The names of the queues."""
    return tuple(re.findall(r"^Queue: (\S+)$", text, re.MULTILINE))


def waiting(status: JobStatus) -> str:
    """Why a job has not started: PBS says it in words."""
    return "" if status.reason == "None" else status.reason
