"""Slurm: directives, argv, and parsers of the output of its programs (recorded from 22.05)."""

from __future__ import annotations

import re
from dataclasses import replace

from provision.knowledge.whole_numbers import whole_number
from provision.model.batch import Batch, Directive, to_seconds
from provision.model.quoting import Code
from provision.profile.patterns import TIME
from provision.schedulers import SchedulerInterface
from provision.schedulers.node_kind import NodeKind, QueueLimits
from provision.schedulers.status import JobStatus, RunningJob, elapsed, status_of_array

TASKS = re.compile(r"[0-9]{1,7}(-[0-9]{1,7}(:[1-9][0-9]{0,6})?)?")

# Why a job waits: explanations of Slurm's reasons that not every user knows.
REASONS = {
    "Priority": "jobs with a higher priority start first",
    "Resources": "waits for nodes to become free",
    "PartitionTimeLimit": "requests more time than its partition allows: it will never start",
    "PartitionNodeLimit": "requests more nodes than its partition allows: it will never start",
    "PartitionConfig": "requests more than its partition has, for example nodes: it will never start",
    "DependencyNeverSatisfied": "waits for a job that failed: it will never start",
    "PartitionDown": "its partition is down",
    "ReqNodeNotAvail": "nodes that it requests are down or reserved",
    "BadConstraints": "no node has the features that it requests",
    "AssocGrpCPUMinutesLimit": "the account has used up its hours",
    "QOSMaxJobsPerUserLimit": "this user already runs as many jobs as the QOS allows",
    "JobHeldUser": "held by its user; `scontrol release` releases it",
    "JobHeldAdmin": "held by an administrator",
}


class _Slurm(SchedulerInterface):
    SUBMIT = "sbatch"
    QUEUE = "squeue --me"
    INTERACTIVE = "salloc"
    JOB_ID = "SLURM_JOB_ID"
    # `123`, `123_4` of an array, `123+1` of a heterogeneous job, `123@cluster`
    JOB_ID_FORM = r"[0-9]{1,18}([_+][0-9]{1,18})?(@[A-Za-z0-9][\w.-]*)?"
    UNKNOWN = "Invalid job id"
    OUTPUT = "{name}-%j.out"  # sbatch replaces `%j` with the job's ID
    HOSTS = Code("${SLURM_JOB_NODELIST:-}")
    # The address with which Slurm itself reaches the node (slurm.conf(5), NodeAddr): the network need not know its name.
    FIRST_NODE = Code(
        '$(scontrol show node "$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed -n 1p)" |\n'
        "  sed -n 's/.*NodeAddr=\\([^ ]*\\).*/\\1/p')"
    )
    SUBMIT_FOLDER = "SLURM_SUBMIT_DIR"
    COMMENTS_BEHIND = True
    STARTS_IN_SUBMIT_FOLDER = True
    PREFIX = "#SBATCH"
    # Options of sbatch and srun, variables of an outer job, filters of squeue and sinfo, what connects ranks of an outer step.
    BENDING = (
        *("SBATCH_", "SLURM_", "SLURMD_", "SRUN_", "SALLOC_", "SQUEUE_", "SINFO_", "SCONTROL_", "SACCT_"),
        *("PMI_", "PMI2_", "PMIX_", "OMPI_COMM_WORLD_"),
    )
    # A site's modules set SLURM_MPI_TYPE as the default of `srun --mpi=`.
    STEADY = (
        *("SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_JWT", "SLURM_ROOT", "SLURM_HOME", "SLURM_MPI_TYPE"),
        *("SBATCH_ACCOUNT", "SBATCH_RESERVATION", "SBATCH_WCKEY"),
    )
    # `%M` of squeue(1) is the time that a job has run.
    RUNNING_ARGV = (
        *("squeue", "--all", "--noheader", "--format=%A|%u|%M"),
        "--states=RUNNING,COMPLETING,SUSPENDED,STOPPED,SIGNALING,STAGE_OUT",
    )
    # Also the partitions that Slurm hides from people who may not use them.
    QUEUES_ARGV = ("scontrol", "--all", "--oneliner", "show", "partition")
    ARRAY = ("SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID")
    REQUEUE = ("scontrol", "requeue")

    def directives(self, batch: Batch) -> tuple[Directive, ...]:
        """The `#SBATCH` lines of a job."""
        output, which = batch.output, "%j: the job ID"
        if batch.array:
            output, which = output.replace("%j", "%A_%a"), "%A: the job ID, %a: the task"
        options: list[tuple[str, str]] = [
            (f"--job-name={batch.name}", "the job's name in the queue"),
            (f"--output={output}", f"the output file ({which})"),
            (f"--nodes={batch.nodes}", "number of nodes"),
            (f"--ntasks-per-node={batch.ranks_per_node}", "processes (ranks) on each node"),
            (f"--time={batch.time}", "time limit, after which the scheduler ends the job"),
        ]
        if batch.exclusive:
            options.append(("--exclusive", "whole nodes"))
        if batch.cpus_per_rank:
            options.append((f"--cpus-per-task={batch.cpus_per_rank}", "CPUs for each process"))
        for key, value, meaning in (
            ("partition", batch.partition, "the queue"),
            ("constraint", batch.constraint, "the kind of node"),
            ("account", batch.account, "the account to charge"),
            ("qos", batch.qos, "the quality of service: its limits and its priority"),
            ("licenses", ",".join(batch.filesystems), "the file systems that the job needs"),
        ):
            if value:
                options.append((f"--{key}={value}", meaning))
        options += _gpus(batch)
        if batch.memory and batch.scheduler.memory == "per-cpu":
            options.append((f"--mem-per-cpu={batch.memory}", "memory for each CPU"))
        elif batch.node_memory and batch.scheduler.memory == "per-node":
            options.append((f"--mem={batch.node_memory}", f"memory on each node: {batch.memory} for each CPU"))
        options += _wishes(batch)
        return self._lines(options, batch, quoted)

    def is_array(self, text: str) -> bool:
        """Whether this text names the tasks of an array: `1-8`, `1,2,4`, `0-30:10`, with `%2` for two at a time."""
        numbers, percent, most = text.partition("%")
        parts = numbers.split(",")
        rising = all(
            int(part.partition("-")[0]) <= int(re.split("[-:]", part)[1])
            for part in parts
            if TASKS.fullmatch(part) and "-" in part
        )
        return all(TASKS.fullmatch(part) for part in parts) and rising and (not percent or bool(whole_number(most)))

    def submit_argv(self, script: str) -> tuple[str, ...]:
        """The command that submits a job script and prints only the job's ID."""
        return ("sbatch", "--parsable", script)

    def parse_job_id(self, text: str) -> str | None:
        """The job ID in the output of `sbatch`, or of a site's program in its place, which may print more and drop `--parsable`.

        sbatch prints `123`, or `Submitted batch job 123`; of another cluster `123;NAME` and `… on cluster NAME`: here `123@NAME`.
        """
        spoken = re.findall(r"Submitted batch job (\d+)(?: on cluster (\S+))?", text)
        found = spoken or re.findall(r"^[ \t]*(\d+)(?:;(\S+))?[ \t\r]*$", text, re.MULTILINE)
        return "@".join(part for part in found[-1] if part) if found else None

    def cancel_argv(self, *jobs: str) -> tuple[str, ...]:
        clusters = dict.fromkeys(job.partition("@")[2] for job in jobs if "@" in job)
        return ("scancel", *(f"--clusters={cluster}" for cluster in clusters), *(job.partition("@")[0] for job in jobs))

    def status_argv(self, job: str) -> tuple[str, ...]:
        """The command that prints the state of a job, without accounting.

        Slurm knows an ended job for `MinJobAge` (300 s by default). In a federation, a job that started on another cluster than
        the one that took it is REVOKED where it was submitted.
        """
        number, _, cluster = job.partition("@")
        where = f"--clusters={cluster}" if cluster else "--federation"
        return ("scontrol", where, "show", "job", "--oneliner", number)

    def parse_status(self, text: str) -> JobStatus | None:
        """The status in the output of `scontrol show job --oneliner`.

        It has a line for each task of an array, and for each component of a heterogeneous job, in any order. None if Slurm does
        not know the job.
        """
        tasks = [(fields, status) for fields, status in map(_parse_line, text.splitlines()) if status is not None]
        if len(tasks) < 2:
            return tasks[0][1] if tasks else None
        if "HetJobId" in tasks[0][0]:
            # The script runs in the first component, whose output it is.
            parts = [status for _, status in sorted(tasks, key=lambda task: task[0].get("HetJobOffset", ""))]
            worst = next((part for part in parts if part.ended and part.state != "COMPLETED"), parts[0])
            return replace(
                parts[0], state=worst.state, exit_code=worst.exit_code, nodes=",".join(p.nodes for p in parts)
            )
        return status_of_array(tasks[0][0].get("ArrayJobId", tasks[0][1].job), [status for _, status in tasks])

    def queued_argv(self, name: str) -> tuple[str, ...]:
        """The command that lists the user's jobs with this name, waiting or running."""
        return ("squeue", "--me", "--federation", "--noheader", "--format=%i", f"--name={name}")

    def parse_running(self, text: str) -> tuple[RunningJob, ...]:
        rows = [line.strip().split("|") for line in text.splitlines()]
        return tuple(
            RunningJob(job=row[0], user=row[1], seconds=elapsed(row[2])) for row in rows if len(row) == 3 and row[0]
        )

    def parse_queues(self, text: str) -> tuple[QueueLimits, ...]:
        """The partitions with their limits."""
        rows = (dict(re.findall(r"(?:^|\s)([A-Za-z]+)=(\S*)", line)) for line in text.splitlines())
        return tuple(
            QueueLimits(
                name=fields["PartitionName"],
                default=fields.get("Default") == "YES",
                opens=fields.get("State", "UP") == "UP",
                time_s=_limit_s(fields.get("MaxTime", "")),
                least_nodes=whole_number(fields.get("MinNodes", "")) or 0,
                most_nodes=whole_number(fields.get("MaxNodes", "")),
                qos=_allowed(fields.get("AllowQos", "")),
                accounts=_allowed(fields.get("AllowAccounts", "")),
            )
            for fields in rows
            if "PartitionName" in fields
        )

    def waiting(self, status: JobStatus) -> str:
        """Why a job has not started: Slurm's reason, explained if we know it."""
        meaning = REASONS.get(status.reason.split(",")[0])
        return f"{status.reason}: {meaning}" if meaning else "" if status.reason == "None" else status.reason


scheduler = _Slurm()


def _wishes(batch: Batch) -> list[tuple[str, str]]:
    """The options of a job array, of a job that can be started again, and of messages by mail."""
    options = [(f"--array={batch.array}", "the tasks, each a job of its own")] if batch.array else []
    if batch.requeue:
        options += [
            ("--requeue", "if the scheduler ends the job before its time limit, it starts it again"),
            ("--open-mode=append", "a job that starts again writes to the end of its output file"),
        ]
    if batch.announce_s:
        options += [
            (
                f"--signal=B:USR1@{batch.announce_s}",
                "seconds before the time limit: the build ends, and puts the job back into the queue",
            ),
            ("--open-mode=append", "a job that starts again writes to the end of its output file"),
        ]
    if batch.mail:
        options += [(f"--mail-user={batch.mail}", "who gets messages"), ("--mail-type=END,FAIL", "about what")]
    return options


def _gpus(batch: Batch) -> list[tuple[str, str]]:
    """The option for GPUs that the site uses."""
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
                (
                    f"--gpus-per-task={model}{count // batch.ranks_per_node}",
                    "GPUs for each process, which sees no other GPU",
                )
            ]
        case "gpus" | "gpus-per-task":
            return [(f"--gpus={model}{count * batch.nodes}", "GPUs in all")]


def quoted(option: str) -> str:
    """An option as sbatch reads it in a directive: in double quotes if it contains white space or special characters."""
    if re.fullmatch(r"[A-Za-z0-9_.,:;=/@%+&|*()\[\]-]+", option):
        return option
    key, separator, value = option.partition("=")
    if not separator:
        return option  # `-A staff` is meant as two words
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'{key}{separator}"{escaped}"'


def _parse_line(text: str) -> tuple[dict[str, str], JobStatus | None]:
    """The fields of a line, and the status of its job or task."""
    fields: dict[str, str] = {}
    for key, value in re.findall(r"(?:^|\s)([A-Za-z]+)=(\S*)", text):
        fields.setdefault(key, value)  # a comment may contain `Key=value` too, but it comes after the fields that count
    # The path may contain blanks: it ends before the next field.
    _, found, behind = text.partition(" StdOut=")
    output = re.split(r"\s(?=[A-Z][A-Za-z]*=)", behind, maxsplit=1)[0].strip() if found else fields.get("StdOut", "")
    if "JobState" not in fields:
        return fields, None
    task = fields.get("ArrayTaskId", "")
    name = f"{fields['ArrayJobId']}_{task}" if task.isdigit() and "ArrayJobId" in fields else fields.get("JobId", "")
    return fields, JobStatus(
        job=name,
        state=fields["JobState"],
        reason=fields.get("Reason", "None"),
        exit_code=fields.get("ExitCode", "0:0"),
        output=output,
        time_limit=fields.get("TimeLimit", ""),
        run_time=fields.get("RunTime", ""),
        nodes=fields.get("NodeList", ""),
    )


MPI_TYPES_ARGV = ("srun", "--mpi=list")
"""The command that lists the values that `srun --mpi=` accepts."""
CONFIG_ARGV = ("scontrol", "show", "config")
"""The command that prints the configuration of Slurm."""
NODE_KINDS_ARGV = ("sinfo", "--all", "--exact", "--noheader", "--format=%P|%z|%m|%G|%f|%D|%l|%h")
"""The command that lists the kinds of nodes of each partition."""


def parse_mpi_types(text: str) -> tuple[str, ...]:
    """The values of `--mpi=` that connect ranks: one word on each line; versions of PMIx share a line."""
    kinds = [words[0] for words in map(str.split, text.splitlines()) if len(words) == 1]
    for versions in re.findall(r"versions available: (.*)", text):
        kinds += versions.replace(",", " ").split()
    return tuple(kind for kind in kinds if kind != "none")


def _allowed(text: str) -> tuple[str, ...]:
    """The names of those who may use a partition; empty if all may."""
    return () if text in ("ALL", "N/A", "") else tuple(text.split(","))


def _limit_s(text: str) -> int | None:
    """The seconds of a limit; None for `UNLIMITED` and what is not a time."""
    try:
        return to_seconds(text)
    except ValueError:
        return None


def associations_argv(user: str) -> tuple[str, ...]:
    """The command that lists the accounts of a user with their QOS; it fails at a site without accounting."""
    words = ("show", "associations", f"user={user}", "format=Account,QOS")
    return ("sacctmgr", "--immediate", "--noheader", "--parsable2", *words)


def parse_associations(text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The accounts with their QOS."""
    rows = [line.strip().split("|") for line in text.splitlines()]
    return tuple((row[0], tuple(filter(None, row[1].split(",")))) for row in rows if len(row) == 2 and row[0])


def parse_config(text: str) -> dict[str, str]:
    """The values of the configuration in that command's output."""
    return dict(re.findall(r"^(\w+) *= (.*?) *$", text, re.MULTILINE))


def parse_node_kinds(text: str) -> tuple[NodeKind, ...]:
    """The kinds of nodes: partition (`*`: the default), sockets:cores:threads, MiB of memory, GPUs, features, their number.

    The partition's time limit and OverSubscribe may follow. A line of another form is left out: sinfo prints `+` behind
    numbers that differ within a line.
    """
    kinds = []
    for line in text.splitlines():
        fields = line.strip().split("|")
        shape = re.fullmatch(r"(\d{1,5}):(\d{1,5}):(\d{1,5})", fields[1]) if len(fields) in (5, 6, 8) else None
        memory = whole_number(fields[2]) if shape else None
        if shape is None or memory is None:
            continue
        sockets, cores, threads = map(int, shape.groups())
        if cores == threads == 1:  # slurm.conf names only CPUs: then Slurm counts each of them as a socket
            sockets, cores = 1, sockets
        gpus = re.findall(r"(?:^|,)gpu(?::([A-Za-z][\w.-]*))?:(\d{1,3})\b", fields[3])
        kinds.append(
            NodeKind(
                partition=fields[0].rstrip("*"),
                default=fields[0].endswith("*"),
                sockets=sockets,
                cores=sockets * cores,
                threads=sockets * cores * threads,
                memory_mib=memory,
                gpu_counts=tuple((name.lower(), int(number)) for name, number in gpus),
                features=tuple(word for word in fields[4].split(",") if word and word != "(null)"),
                count=whole_number(fields[5]) or 0 if len(fields) > 5 else 0,
                time=to_seconds(fields[6]) if len(fields) == 8 and TIME.fullmatch(fields[6]) else None,
                whole=fields[-1].upper().startswith("EXCLUSIVE"),
            )
        )
    return tuple(kinds)
