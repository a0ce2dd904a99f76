"""PBS Pro (and OpenPBS): directives, argv, and parsers of the output of its programs.

Sources: qsub(1B) and qstat(1B) of PBS Professional 2022; the pages of ALCF Polaris (2026); a real OpenPBS 23.06.06, whose
answers are in tests/recorded/openpbs-23.06.
PBS copies the script at submission, and starts it in the home folder with umask 0077 (seen on Polaris).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from provision.knowledge.whole_numbers import whole_number
from provision.model.batch import Batch, Directive, to_clock, to_seconds
from provision.model.quoting import Code, quote_sh
from provision.schedulers import SchedulerInterface
from provision.schedulers.node_kind import QueueLimits
from provision.schedulers.status import JobStatus, RunningJob, elapsed

TASKS = re.compile(r"([0-9]{1,7})-([0-9]{1,7})(:[1-9][0-9]{0,6})?(%[1-9][0-9]{0,6})?")

# job_state of qstat(1B): each letter, with Slurm's word for that state.
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
# An Exit_status below 0 comes from PBS itself, one of 256 or more from a signal (Administrator's Guide, "Job Exit Status Codes").
KILLED_BY_WALLTIME = -29
KILLED_BY_MEMORY = (-27, -28)
# A job that was deleted can have the Exit_status 0 (JOB_SUBSTATE_TERMINATED in src/include/job.h of OpenPBS 23.06.06).
DELETED = "91"


class _PBS(SchedulerInterface):
    SUBMIT = "qsub"
    QUEUE = 'qstat -u "$USER"'
    INTERACTIVE = "qsub -I"
    JOB_ID = "PBS_JOBID"
    JOB_ID_FORM = r"[0-9]+(\[[0-9]*\]|_[0-9]+)?(\.[A-Za-z0-9.-]+)?"  # `123_4`: the output folder of a task of an array
    UNKNOWN = "Unknown Job Id"
    OUTPUT = ""  # PBS names the file in this folder after the job (`123.server.OU`): `-o` has no placeholder for the ID
    HOSTS = Code('$(sort -u "${PBS_NODEFILE:-/dev/null}" | paste -sd, -)')
    FIRST_NODE = Code('$(head -n 1 "$PBS_NODEFILE")')
    SUBMIT_FOLDER = "PBS_O_WORKDIR"
    STARTS_IN_SUBMIT_FOLDER = False
    PREFIX = "#PBS"
    # `PBS_DPREFIX` is the word with which directives begin; `-V` passes the variables of an outer job on.
    BENDING = (
        *("PBS_DPREFIX", "PBS_O_", "PBS_JOB", "PBS_NODE", "PBS_TASK", "PBS_ARRAY", "PBS_ENVIRONMENT"),
        *("PALS_", "PMI_"),
    )
    RUNNING_ARGV = ("qstat", "-f")  # all jobs with all their values (qstat(1B))
    QUEUES_ARGV = ("qstat", "-Q", "-f")
    ARRAY = ("PBS_ARRAY_ID", "PBS_ARRAY_INDEX")

    def directives(self, batch: Batch) -> tuple[Directive, ...]:
        """The `#PBS` lines of a job: one chunk for each node. qsub splits a line into words as a shell does (`make_argv`)."""
        chunk = [f"select={batch.nodes}"]
        if batch.constraint:
            chunk.append(batch.constraint)
        # Where nodes are shared, a chunk has one CPU unless it names more (seen on OpenPBS), and its host one slot for mpirun.
        if batch.cpus_per_rank and not batch.exclusive:
            chunk += [f"ncpus={batch.cpus_per_rank * batch.ranks_per_node}", f"mpiprocs={batch.ranks_per_node}"]
        if batch.gpus_per_node and batch.scheduler.gpus != "none":
            chunk.append(f"ngpus={batch.gpus_per_node}")
        if batch.node_memory and batch.scheduler.memory == "per-node":
            chunk.append(f"mem={batch.node_memory.lower()}b")
        options: list[tuple[str, str]] = [
            (f"-N {batch.name}", "the job's name in the queue"),
            (f"-o {quote_sh(batch.output)}", "folder of the output file, which is named after the job ID"),
            ("-j oe", "standard error goes to the same file"),
            (f"-l {':'.join(chunk)}", "number and kind of nodes"),
            (f"-l place=scatter{':excl' if batch.exclusive else ''}", "each chunk on a different node"),
            (f"-l walltime={to_clock(to_seconds(batch.time))}", "time limit, after which the scheduler ends the job"),
            (f"-W umask={batch.umask}", "lets others read the output (PBS starts jobs with umask 0077)"),
        ]
        if batch.partition:
            options.append((f"-q {batch.partition}", "the queue"))
        if batch.account:
            options.append((f"-A {batch.account}", "the account to charge"))
        if batch.filesystems:
            options.append((f"-l filesystems={':'.join(batch.filesystems)}", "the file systems that the job needs"))
        if batch.array:
            options.append((f"-J {batch.array}", "the tasks, each a job of its own"))
        if batch.requeue:
            options.append(("-r y", "if the scheduler ends the job before its time limit, it starts it again"))
        if batch.mail:
            options += [(f"-M {batch.mail}", "who gets messages"), ("-m ae", "about what: the end and a failure")]
        return self._lines(options, batch)

    def is_array(self, text: str) -> bool:
        """Whether this text names the tasks of an array: one range, `1-8` or `0-30:10`, with `%2` for two at a time."""
        match = TASKS.fullmatch(text)
        return match is not None and int(match[1]) < int(match[2])

    def parse_job_id(self, text: str) -> str | None:
        """The job ID in the output of `qsub`: `123.server`, or `123[].server` for an array."""
        match = re.search(r"^(\d+(?:\[\])?\.[A-Za-z0-9.-]+)$", text.strip(), re.MULTILINE)
        return match[1] if match else None

    def status_argv(self, job: str) -> tuple[str, ...]:
        """The command that prints the state of a job, also of an ended one while the server keeps its history."""
        return ("qstat", "-x", "-f", job)

    def parse_status(self, text: str) -> JobStatus | None:
        """The status in the output of `qstat -xf`; None if PBS does not know the job."""
        job, fields = next(_records(text, "Job Id"), ("", {}))
        if not job:
            return None
        letter, exit_status = fields.get("job_state", ""), fields.get("Exit_status", "")
        code = (-1 if exit_status.startswith("-") else 1) * (whole_number(exit_status.removeprefix("-")) or 0)
        state: str = STATES.get(letter, letter)
        if letter in ("F", "X"):
            state = _ended(code, "Exit_status" in fields, fields.get("substate", ""))
        signal = code - 256 if code > 256 else 0
        return JobStatus(
            job=job,
            state=state,
            reason=fields.get("comment", "None"),
            exit_code=f"0:{signal}" if signal else f"{code}:0",
            output=_output(job, fields.get("Output_Path", "").partition(":")[2]),
            time_limit=fields.get("Resource_List.walltime", ""),
            run_time=fields.get("resources_used.walltime", ""),
            nodes="+".join(dict.fromkeys(re.findall(r"(?:^|\+)([^/+]+)/", fields.get("exec_host", "")))),
        )

    def queued_argv(self, name: str) -> tuple[str, ...]:
        """The command that lists the jobs with this name, waiting or running."""
        return ("qselect", "-N", name, "-s", "HQRW")

    def parse_running(self, text: str) -> tuple[RunningJob, ...]:
        """The jobs in that command's output that run, end, or are suspended."""
        return tuple(
            RunningJob(
                job=number,
                user=fields.get("Job_Owner", "").partition("@")[0],
                seconds=elapsed(fields.get("resources_used.walltime", "")),
            )
            for number, fields in _records(text, "Job Id")
            if fields.get("job_state") in ("R", "E", "S", "U", "B")
        )

    def parse_queues(self, text: str) -> tuple[QueueLimits, ...]:
        """The queues with their limits (pbs_queue_attributes(7B)); `nodect` is the number of chunks: we ask for one a node."""
        return tuple(
            QueueLimits(
                name=name,
                opens="False" not in (fields.get("enabled"), fields.get("started")),
                time_s=elapsed(fields.get("resources_max.walltime", "")) or None,
                least_nodes=whole_number(fields.get("resources_min.nodect", "")) or 0,
                most_nodes=whole_number(fields.get("resources_max.nodect", "")),
            )
            for name, fields in _records(text, "Queue")
        )

    def waiting(self, status: JobStatus) -> str:
        """Why a job has not started: the comment of PBS, which is already a phrase."""
        return "" if status.reason == "None" else status.reason


scheduler = _PBS()


def _records(text: str, title: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The records in an answer of qstat, each below a line with its title: its name, and its fields."""
    for part in re.split(rf"^(?={title}: )", text, flags=re.MULTILINE):
        if name := re.match(rf"{title}:\s*(\S+)", part):
            yield name[1], dict(re.findall(r"^ {4}(\S+) = (.*)$", part.replace("\n\t", ""), re.MULTILINE))


def _output(job: str, path: str) -> str:
    """The file of the output, whose name qstat leaves out if `-o` is a folder; a pattern for the files of an array."""
    if not path.endswith("/"):
        return path
    return str(PurePosixPath(path) / f"{job.replace('[]', '[[]*')}.OU")


def _ended(code: int, ran: bool, substate: str) -> str:
    if not ran or substate == DELETED:
        return "CANCELLED"
    if code == KILLED_BY_WALLTIME:
        return "TIMEOUT"
    if code in KILLED_BY_MEMORY:
        return "OUT_OF_MEMORY"
    return "FAILED" if code else "COMPLETED"
