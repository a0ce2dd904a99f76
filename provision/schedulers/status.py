"""The state of a job, in the same words for every scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

# States in which a job has ended; the words are Slurm's (squeue(1), JOB STATE CODES).
ENDED = (
    *("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL"),
    *("BOOT_FAIL", "DEADLINE", "PREEMPTED", "REVOKED"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus:
    """What a scheduler reports about a job. `state` is Slurm's word, whichever scheduler it is.

    `reason` is why the job waits, in the scheduler's words; `exit_code` is `code:signal`. For an array of jobs it is the status
    of one task that decides, `running` tasks run, and `failed` is one that did not end well.
    """

    job: str
    state: str
    reason: str = "None"
    exit_code: str = "0:0"
    output: str = ""
    time_limit: str = ""
    run_time: str = ""
    nodes: str = ""
    running: int = 0
    failed: JobStatus | None = None

    @property
    def ended(self) -> bool:
        """Whether the job has ended."""
        return self.state in ENDED


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningJob:
    """A job that runs now, whose it is, and for how many seconds it has run."""

    job: str
    user: str
    seconds: int


def elapsed(text: str) -> int:
    """The seconds of `9:59`, `01:02:03` or `1-02:03:04`; 0 for anything else: the job has just started."""
    days, _, clock = text.strip().rpartition("-")
    parts = clock.split(":")
    if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in (*parts, days or "0")):
        return 0
    seconds = 0
    for part in parts:
        seconds = seconds * 60 + int(part)
    return seconds + 86400 * int(days or 0)


def ending(status: JobStatus) -> str:
    """How a job ended, as a sentence: it finished, failed, was cancelled, or reached a limit."""
    code, _, signal = status.exit_code.partition(":")
    after = f" after {status.run_time}" if status.run_time else ""  # PBS has none of a whole array
    match status.state:
        case "COMPLETED":
            return f"job {status.job} finished{after}"
        case "TIMEOUT":
            return f"job {status.job} reached its time limit of {status.time_limit}"
        case "CANCELLED" if not status.nodes or status.nodes == "(null)":
            return f"job {status.job} was cancelled before it started"
        case "CANCELLED":
            return f"job {status.job} was cancelled{after}"
        case "OUT_OF_MEMORY":
            return f"job {status.job} used more memory than it requested"
        case "FAILED" if signal not in ("", "0"):
            return f"job {status.job} was ended by signal {signal}{after}"
        case "FAILED":
            return f"job {status.job} failed with exit code {code}{after}"
        case _:
            return f"job {status.job} ended in state {status.state} ({status.reason}){after}"


def status_of_array(job: str, tasks: Sequence[JobStatus]) -> JobStatus:
    """The status of an array of jobs, from those of its tasks that the scheduler still knows: at least one."""
    failed = next((task for task in tasks if task.ended and task.state != "COMPLETED"), None)
    running = [task for task in tasks if task.state == "RUNNING"]
    waiting = [task for task in tasks if not task.ended]
    decides = next(iter((*running, *waiting)), None) or failed or tasks[0]
    return replace(decides, job=job if decides is not failed else decides.job, running=len(running), failed=failed)
