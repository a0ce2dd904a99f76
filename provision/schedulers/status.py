"""How a job is, whichever scheduler says it."""

from __future__ import annotations

from dataclasses import dataclass

# States from which a job does not come back; the words are Slurm's (squeue(1), JOB STATE CODES).
ENDED = (
    *("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL"),
    *("BOOT_FAIL", "DEADLINE", "PREEMPTED", "REVOKED"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus:
    """What a scheduler says of a job. `state` is in Slurm's words, `native` in another scheduler's own.

    `reason` is why it waits, as the scheduler says it; `exit_code` is `code:signal`.
    """

    job: str
    state: str
    reason: str = "None"
    exit_code: str = "0:0"
    output: str = ""
    time_limit: str = ""
    run_time: str = ""
    nodes: str = ""
    native: str = ""

    @property
    def ended(self) -> bool:
        """Whether the job is over."""
        return self.state in ENDED


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
