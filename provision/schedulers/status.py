"""The state of a job, in the same words for every scheduler."""

from __future__ import annotations

from dataclasses import dataclass

# States in which a job has ended; the words are Slurm's (squeue(1), JOB STATE CODES).
ENDED = (
    *("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL"),
    *("BOOT_FAIL", "DEADLINE", "PREEMPTED", "REVOKED"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus:
    """What a scheduler reports about a job. `state` is Slurm's word, whichever scheduler it is.

    `reason` is why the job waits, in the scheduler's words; `exit_code` is `code:signal`.
    """

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
        """Whether the job has ended."""
        return self.state in ENDED


def ending(status: JobStatus) -> str:
    """How a job ended, as a sentence: it finished, failed, was cancelled, or reached a limit."""
    code, _, signal = status.exit_code.partition(":")
    match status.state:
        case "COMPLETED":
            return f"job {status.job} finished after {status.run_time}"
        case "TIMEOUT":
            return f"job {status.job} reached its time limit of {status.time_limit}"
        case "CANCELLED" if not status.nodes or status.nodes == "(null)":
            return f"job {status.job} was cancelled before it started"
        case "CANCELLED":
            return f"job {status.job} was cancelled after {status.run_time}"
        case "OUT_OF_MEMORY":
            return f"job {status.job} used more memory than it requested"
        case "FAILED" if signal not in ("", "0"):
            return f"job {status.job} was ended by signal {signal} after {status.run_time}"
        case "FAILED":
            return f"job {status.job} failed with exit code {code} after {status.run_time}"
        case _:
            return f"job {status.job} ended in state {status.state} ({status.reason}) after {status.run_time}"
