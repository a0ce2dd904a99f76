"""Make the error of a program that failed, from its last lines and the catalogue of known failures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TypeVar

from provision.errors import CommandError, ProvisionError
from provision.explain.conclude import Explanation
from provision.explain.explain import explain
from provision.explain.known import Known
from provision.machine.programs.secrets_here import secrets_here

E = TypeVar("E", bound=ProvisionError)
KNOWN = Path(__file__).resolve().parents[2] / "explain" / "known"

# What only repeats the log: `explain` shows it as such, but no error of ours takes a command from a log, and the caller knows
# more about what it ran than the words of a program say.
REPEATED = ("error-with-hint", "reported-error", "reported-complaint")


@cache
def known_failures() -> Known:
    """All known failures: every file in the folder `explain/known/`."""
    return Known(path.read_text(encoding="utf-8") for path in sorted(KNOWN.glob("*.txt")))


def diagnose(lines: Sequence[str]) -> Explanation:
    """What these lines of the output of a program that failed mean."""
    explanation = explain_log(["\n".join(lines).encode("utf-8", "replace")], failed=True)
    known = explanation.known
    return replace(explanation, verdict="unknown") if known and known.entry.id in REPEATED else explanation


def explain_log(blocks: Iterable[bytes], *, failed: bool = False) -> Explanation:
    """What a log means that is read in blocks of whole lines; only one block is in memory, and no secret is shown."""
    return explain(blocks, known_failures(), failed=failed, hide=secrets_here().hide)


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
