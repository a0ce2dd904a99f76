"""Make the error of a program that failed, from its last lines and the list of known failures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from provision.errors import CommandError, ProvisionError
from provision.knowledge.failures import explain, pick_error_lines
from provision.machine.tables import known_failures

E = TypeVar("E", bound=ProvisionError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What the output of a program means: the lines that look like errors, and the known failure, if it is one."""

    evidence: tuple[str, ...]
    id: str | None = None
    cause: str | None = None
    hint: str | None = None


def diagnose(lines: Sequence[str]) -> Diagnosis:
    """What these lines of a program's output mean."""
    known, evidence = explain(lines, known_failures()), pick_error_lines(lines)
    if known is None:
        return Diagnosis(evidence=evidence)
    return Diagnosis(evidence=evidence, id=known.id, cause=known.cause, hint=known.hint)


def failed_program(
    what: str,
    lines: Sequence[str],
    *,
    hint: str,
    log: str | None = None,
    otherwise: str = "",
    error: type[E] = CommandError,  # type: ignore[assignment]
) -> E:
    """The error of a program that failed with these last lines.

    `what` failed is followed by the known cause, or by `otherwise`; `hint` is for a failure that is not known.
    """
    diagnosis = diagnose(lines)
    cause = diagnosis.cause or otherwise
    return error(
        f"{what}: {cause}" if cause else what, evidence=diagnosis.evidence, hint=diagnosis.hint or hint, log=log
    )
