"""Slurm: directives, argv, and parsers of what its programs print (recorded from 22.05)."""

from __future__ import annotations

import re

from provision.model.batch import Batch, Directive
from provision.schedulers.status import JobStatus

SUBMIT = "sbatch"
CANCEL = "scancel"
QUEUE = "squeue --me"
JOB_ID = "SLURM_JOB_ID"
SUBMIT_FOLDER = "SLURM_SUBMIT_DIR"
COMMENTS_BEHIND = True
BEFORE_SUBMITTING: str | None = None
STARTS_IN_SUBMIT_FOLDER = True

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


def output_path(jobs: str, name: str) -> str:
    """Where a job's output goes: sbatch puts the job's id in place of `%j`."""
    return f"{jobs}/{name}-%j.out"


def directives(batch: Batch) -> tuple[Directive, ...]:
    """The `#SBATCH` lines of a job."""
    asked: list[tuple[str, str]] = [
        (f"--job-name={batch.name}", "its name in the queue"),
        (f"--output={batch.output}", "what it prints (%j: the job's id)"),
        (f"--nodes={batch.nodes}", "nodes"),
        (f"--ntasks-per-node={batch.ranks_per_node}", "processes (ranks) on each node"),
        (f"--time={batch.time}", "time limit: after it the job is ended"),
    ]
    if batch.exclusive:
        asked.append(("--exclusive", "whole nodes"))
    if batch.cpus_per_rank:
        asked.append((f"--cpus-per-task={batch.cpus_per_rank}", "CPUs of each process"))
    for key, value, meaning in (
        ("partition", batch.partition, "the queue"),
        ("constraint", batch.constraint, "the kind of node"),
        ("account", batch.account, "who pays"),
        ("qos", batch.qos, "the quality of service: its limits and its priority"),
        ("licenses", ",".join(batch.filesystems), "the file systems that it needs"),
    ):
        if value:
            asked.append((f"--{key}={value}", meaning))
    asked += _gpus(batch)
    if batch.memory and batch.scheduler.memory == "per-cpu":
        asked.append((f"--mem-per-cpu={batch.memory}", "memory for each CPU"))
    elif batch.node_memory and batch.scheduler.memory == "per-node":
        asked.append((f"--mem={batch.node_memory}", f"memory on each node: {batch.memory} for each CPU"))
    asked += [(option, "as the site's file says") for option in (*batch.scheduler.options, *batch.options)]
    return tuple(Directive(line=f"#SBATCH {quoted(option)}", meaning=meaning) for option, meaning in asked)


def _gpus(batch: Batch) -> list[tuple[str, str]]:
    """GPUs as the site spells them."""
    count, model = batch.gpus_per_node, f"{batch.gpu_model}:" if batch.gpu_model else ""
    match batch.scheduler.gpus if count else "none":
        case "none":
            return []
        case "gres":
            return [(f"--gres=gpu:{model}{count}", "GPUs on each node")]
        case "gpus-per-node":
            return [(f"--gpus-per-node={model}{count}", "GPUs on each node")]
        case "gpus-per-task" if batch.nodes * batch.ranks_per_node > 1:
            return [
                (f"--gpus-per-task={model}{count // batch.ranks_per_node}", "GPUs of each process: it sees no other")
            ]
        case "gpus" | "gpus-per-task":
            return [(f"--gpus={model}{count * batch.nodes}", "GPUs in all")]


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


def is_job_id(text: str) -> bool:
    """Whether a job may have this id."""
    return text.isdigit()


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


def is_unknown(said: str) -> bool:
    """Whether the scheduler's complaint says that it does not know the job (any more)."""
    return "Invalid job id" in said


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


def parse_queued(text: str, name: str) -> tuple[str, ...]:
    """The ids of the jobs of this name."""
    return tuple(text.split())


def queues_argv() -> tuple[str, ...]:
    """The command that lists the partitions."""
    return ("sinfo", "--noheader", "--format=%R")


def parse_queues(text: str) -> tuple[str, ...]:
    """The names of the partitions."""
    return tuple(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))


def waiting(status: JobStatus) -> str:
    """Why a job has not started, in words."""
    meaning = REASONS.get(status.reason.split(",")[0])
    return f"{status.reason}: {meaning}" if meaning else "" if status.reason == "None" else status.reason
