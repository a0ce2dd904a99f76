"""Slurm: directives, argv, and parsers of what its programs print (recorded from 22.05)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from provision.model.job import Job
from provision.model.scheduler import Scheduler
from provision.model.smoke import Smoke

# https://slurm.schedmd.com/squeue.html, JOB STATE CODES: states from which a job does not come back.
ENDED = (
    *("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL"),
    *("BOOT_FAIL", "DEADLINE", "PREEMPTED", "REVOKED"),
)

# Why a job waits, in words, where Slurm's own is not one that everybody knows.
REASONS = {
    "Priority": "others come first",
    "Resources": "waits for nodes to become free",
    "PartitionTimeLimit": "asks for more time than its partition allows: it will never start",
    "PartitionNodeLimit": "asks for more nodes than its partition has: it will never start",
    "PartitionConfig": "asks for more than its partition has, nodes for instance: it will never start",
    "DependencyNeverSatisfied": "waits for a job that failed: it will never start",
    "PartitionDown": "its partition is down",
    "ReqNodeNotAvail": "nodes that it asks for are down or reserved",
    "BadConstraints": "no node has the features that it asks for",
    "AssocGrpCPUMinutesLimit": "the account has used up its hours",
    "QOSMaxJobsPerUserLimit": "this user has as many jobs running as the QOS allows",
    "JobHeldUser": "held: `scontrol release` it",
    "JobHeldAdmin": "held by an administrator",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus:
    """What Slurm says of a job. `state` and `reason` are its own words; `exit_code` is `code:signal`."""

    job: str
    state: str
    reason: str = "None"
    exit_code: str = "0:0"
    output: str = ""
    time_limit: str = ""
    run_time: str = ""
    nodes: str = ""

    @property
    def ended(self) -> bool:
        """Whether the job is over."""
        return self.state in ENDED


def directives(name: str, output: str, job: Job, smoke: Smoke, scheduler: Scheduler) -> tuple[str, ...]:
    """The `#SBATCH` lines of a build job: as many nodes as the proof needs, whole ones unless told otherwise."""
    lines = [
        f"--job-name={name}",
        f"--output={output}",
        f"--nodes={smoke.nodes}",
        f"--ntasks-per-node={smoke.ranks_per_node}",
        f"--time={job.time}",
        *(["--exclusive"] if job.exclusive else []),
        *([f"--cpus-per-task={job.cpus_per_task}"] if job.cpus_per_task else []),
        *(
            f"--{key}={value}"
            for key, value in (
                ("partition", job.partition),
                ("constraint", job.constraint),
                ("account", job.account),
                ("qos", job.qos),
            )
            if value
        ),
        *scheduler.options,
        *job.options,
    ]
    return tuple(f"#SBATCH {quoted(line)}" for line in lines)


def quoted(option: str) -> str:
    """An option as sbatch reads it in a directive: in double quotes where it holds white space or a special letter."""
    if re.fullmatch(r"[A-Za-z0-9_.,:;=/@%+&|*()\[\]-]+", option):
        return option
    key, separator, value = option.partition("=")
    if not separator:
        return option  # `-A staff`: two words, and meant as two
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'{key}{separator}"{escaped}"'


def submit_argv(script: str) -> tuple[str, ...]:
    """The command that submits a job script and prints its id alone."""
    return ("sbatch", "--parsable", script)


def parse_job_id(text: str) -> str | None:
    """The job id of `sbatch --parsable`: `123`, or `123;cluster`."""
    found = re.search(r"^(\d+)(;\S+)?$", text.strip(), re.MULTILINE)
    return found[1] if found else None


def status_argv(job: str) -> tuple[str, ...]:
    """The command that tells how a job is: no accounting needed; ended jobs for `MinJobAge` (300 s by default)."""
    return ("scontrol", "show", "job", "--oneliner", job)


def parse_status(text: str) -> JobStatus | None:
    """What `scontrol show job --oneliner` says; None where it does not know the job."""
    fields: dict[str, str] = {}
    for key, value in re.findall(r"(?:^|\s)([A-Za-z]+)=(\S*)", text):
        fields.setdefault(key, value)  # a comment may hold anything, and stands behind what counts
    output = re.search(r"\sStdOut=(.*?)\s+(?:Power|TresPerNode|MailUser|[A-Z]\w*)=", text)
    if "JobState" not in fields:
        return None
    return JobStatus(
        job=fields.get("JobId", ""),
        state=fields["JobState"],
        reason=fields.get("Reason", "None"),
        exit_code=fields.get("ExitCode", "0:0"),
        output=output[1] if output else fields.get("StdOut", ""),
        time_limit=fields.get("TimeLimit", ""),
        run_time=fields.get("RunTime", ""),
        nodes=fields.get("NodeList", ""),
    )


def mpi_types_argv() -> tuple[str, ...]:
    """The command that lists the ways in which srun starts MPI."""
    return ("srun", "--mpi=list")


def parse_mpi_types(text: str) -> tuple[str, ...]:
    """What may stand behind `--mpi=` so that ranks see each other: one word a line, and versions of pmix on a line of theirs."""
    kinds = [words[0] for words in map(str.split, text.splitlines()) if len(words) == 1]
    for versions in re.findall(r"versions available: (.*)", text):
        kinds += versions.replace(",", " ").split()
    return tuple(kind for kind in kinds if kind != "none")


def queued_argv(name: str) -> tuple[str, ...]:
    """The command that lists our jobs of this name, waiting or running."""
    return ("squeue", "--me", "--noheader", "--format=%i", f"--name={name}")


def partitions_argv() -> tuple[str, ...]:
    """The command that lists the partitions."""
    return ("sinfo", "--noheader", "--format=%R")


def parse_partitions(text: str) -> tuple[str, ...]:
    """The names of the partitions."""
    return tuple(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))


def waiting(status: JobStatus) -> str:
    """Why a job has not started, in words."""
    meaning = REASONS.get(status.reason.split(",")[0])
    return f"{status.reason}: {meaning}" if meaning else "" if status.reason == "None" else status.reason


def ending(status: JobStatus) -> str:
    """How a job ended, exactly: failed, cancelled and out of time are different things."""
    code, _, signal = status.exit_code.partition(":")
    match status.state:
        case "COMPLETED":
            return f"job {status.job} finished after {status.run_time}"
        case "TIMEOUT":
            return f"job {status.job} hit its time limit of {status.time_limit}"
        case "CANCELLED" if not status.nodes or status.nodes == "(null)":
            return f"job {status.job} was cancelled before it began"
        case "CANCELLED":
            return f"job {status.job} was cancelled after {status.run_time}"
        case "OUT_OF_MEMORY":
            return f"job {status.job} used more memory than it asked for"
        case "FAILED" if signal not in ("", "0"):
            return f"job {status.job} was ended by signal {signal} after {status.run_time}"
        case "FAILED":
            return f"job {status.job} failed with exit code {code} after {status.run_time}"
        case _:
            return f"job {status.job} ended as {status.state} ({status.reason}) after {status.run_time}"
