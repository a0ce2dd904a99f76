"""What is wrong, and what to do about it: a fault of an input, and the error that ends the run, with its exit code.

A message says what happened, `evidence` shows where (paths, lines of a log), `hint` is a command to type.
An exception that is not a `ProvisionError` is a bug of this tool and is reported as one (`commands/shared/running.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

# A program that reads `--json` may branch on these; docs/reference/json.md says when each comes.
ErrorKind = Literal[
    "failed",
    "config",
    "usage",
    "unknown-verb",
    "unknown-site",
    "unknown-arch",
    "ambiguous-arch",
    "unknown-stack",
    "unknown-environment",
    "ambiguous-environment",
    "invalid-file",
    "untrusted",
    "refused-by-site",
    "lint",
    "plan",
    "drift",
    "command",
    "job",
    "interrupted",
    "proof",
    "inspection",
    "store",
    "locked",
    "damaged-record",
    "newer",
    "unproved",
    "unpublished",
    "no-generation",
    "protected",
    "no-space",
    "bug",
]

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
# A log shows a failure that is not known.
EXIT_UNKNOWN = 3
EXIT_JOB_LEFT = 4
EXIT_INTERRUPTED = 130


FaultKind = Literal[
    "missing",
    "broken",
    "mismatch",
    "name",
    "forbidden",
    "limit",
    "outside-job",
    "not-writable",
    "no-space",
    "untrusted",
]
"""What is wrong with the subject. missing: it is needed but is not there or not given; broken: it is there but does not
work; mismatch: it is there but does not fit the rest; name: it is not a valid name; forbidden: the site does not allow
it; limit: it is more, or less, than the site allows; outside-job: it works only inside a batch job; not-writable,
no-space: of a folder; untrusted: others than the admins of the site may write it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What stops a plan or a job: the message, the evidence, and a hint. `subject` is one word: `python`, `account`.

    `accepted` is the value of a limit, such as the most nodes of a queue.
    """

    kind: FaultKind
    subject: str
    message: str
    _: KW_ONLY
    evidence: tuple[str, ...] = ()
    hint: str | None = None
    accepted: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return this fault as plain JSON values."""
        return {
            "kind": self.kind,
            "subject": self.subject,
            "message": self.message,
            "evidence": list(self.evidence),
            "hint": self.hint,
        }


def one_fault(
    kind: FaultKind, subject: str, message: str, *evidence: str, hint: str | None = None
) -> tuple[Fault, ...]:
    """A single fault, in place of all that a check could find."""
    return (Fault(kind, subject, message, evidence=evidence, hint=hint),)


class ProvisionError(Exception):
    """A failure with a message, its evidence (lines to show below it) and a hint (what to type next)."""

    exit_code = EXIT_FAILED
    kind: ErrorKind = "failed"

    def __init__(
        self,
        message: str,
        *,
        evidence: Sequence[str] = (),
        hint: str | None = None,
        log: str | None = None,
        kind: ErrorKind | None = None,
        faults: Sequence[Fault] = (),
        correction: tuple[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        if kind is not None:
            self.kind = kind
        self.message = message
        self.evidence = tuple(evidence)
        self.hint = hint
        self.log = log
        self.faults = tuple(faults)
        self.details: dict[str, Any] = {}
        """More keys in `--json`, which some kinds of errors have."""
        # A misspelt word and the nearest valid one: the hint becomes the command with the word corrected.
        self.correction = correction

    def to_lines(self) -> list[str]:
        """The error as people read it: what happened, evidence, log, and after a blank line the hint."""
        lines = [f"error: {self.message}", *(f"  {line}" for line in self.evidence)]
        if self.log:
            lines.append(f"  log: {self.log}")
        if self.hint:
            lines += ["", f"hint: {self.hint}"]
        return lines

    def to_dict(self) -> dict[str, Any]:
        """The error as it is in the `--json` envelope; `problems` only if it is made of faults."""
        shared = {"problems": [fault.to_dict() for fault in self.faults]} if self.faults else {}
        return shared | {
            "kind": self.kind,
            "message": self.message,
            "evidence": list(self.evidence),
            "hint": self.hint,
            "log": self.log,
            "exit_code": self.exit_code,
            **self.details,
        }


class ConfigError(ProvisionError):
    """The request or a file is wrong: nothing was tried."""

    kind: ErrorKind = "config"
    exit_code = EXIT_USAGE


class UsageError(ConfigError):
    """The words of a command contradict each other, or one is missing or not valid."""

    kind: ErrorKind = "usage"


class LintError(ConfigError):
    """A script that was checked has errors; `findings` has them and all other findings, `checked` what was read."""

    kind: ErrorKind = "lint"

    def __init__(
        self,
        message: str,
        *,
        findings: Sequence[dict[str, object]],
        checked: Mapping[str, Any] | None = None,
        **rest: object,
    ) -> None:
        super().__init__(message, **rest)  # type: ignore[arg-type]
        self.details = {"findings": list(findings), "checked": dict(checked or {})}


class PlanError(ProvisionError):
    """The request is valid, but this machine cannot fulfil it: something is missing or does not match."""

    kind: ErrorKind = "plan"


class DriftError(ProvisionError):
    """A plan that was made elsewhere differs from the plan that this machine gives."""

    kind: ErrorKind = "drift"


class CommandError(ProvisionError):
    """A program that we ran failed."""

    kind: ErrorKind = "command"


class JobError(ProvisionError):
    """A batch job failed: `state` is the scheduler's word for it, `cause` the error of the build in the job, if it left one."""

    kind: ErrorKind = "job"

    def __init__(self, message: str, *, state: str, cause: Mapping[str, Any] | None = None, **rest: object) -> None:
        super().__init__(message, **rest)  # type: ignore[arg-type]
        self.details = {"state": state, "cause": dict(cause) if cause else None}


class Interruption(ProvisionError):
    """A user pressed Ctrl-C, or a signal ended the process."""

    kind: ErrorKind = "interrupted"
    exit_code = EXIT_INTERRUPTED


class ProofError(ProvisionError):
    """The environment was built, but did not pass its proof."""

    kind: ErrorKind = "proof"


class StoreError(ProvisionError):
    """The root could not be read or written, or another process holds its lock."""

    kind: ErrorKind = "store"


class NewerError(ValueError):
    """A newer version of the tool wrote this file: it is not damaged, but must not be changed."""


def lines_of(label: str, wrong: Fault | ProvisionError) -> list[str]:
    """One of several faults as lines: its message behind a label, and below it the evidence and the hint."""
    hint = [f"hint: {wrong.hint}"] if wrong.hint else []
    return [f"{label}: {wrong.message}", *(f"  {line}" for line in (*wrong.evidence, *hint))]


def raise_faults(
    faults: Sequence[Fault], error: type[ProvisionError] = PlanError, kind: ErrorKind | None = None
) -> None:
    """Raise one error for all faults: the first is its message, the others are in its evidence.

    Raises:
        ProvisionError: of the class `error`, if there are faults.
    """
    if not faults:
        return
    first, *others = faults
    evidence = [*first.evidence]
    for fault in others:
        evidence += lines_of("also", fault)
    raise error(first.message, evidence=evidence, hint=first.hint, kind=kind, faults=faults)
