"""A problem: something that stops a plan or a job, with its evidence and what to type."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from provision.errors import ErrorKind, PlanError, ProvisionError
from provision.model.stored import Stored

ProblemKind = Literal[
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem(Stored):
    """Something that stops a plan: the message, the evidence, and a hint. `subject` is one word: `python`, `account`.

    `accepted` is the value of a limit, such as the most nodes of a queue.
    """

    kind: ProblemKind
    subject: str
    message: str
    evidence: tuple[str, ...] = ()
    hint: str | None = None
    accepted: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return this problem as plain JSON values."""
        return {key: value for key, value in Stored.to_dict(self).items() if key != "accepted"}


def raise_problems(
    problems: Sequence[Problem], error: type[ProvisionError] = PlanError, kind: ErrorKind | None = None
) -> None:
    """Raise one error for all problems: the first is its message, the others are in its evidence.

    Raises:
        ProvisionError: of the class `error`, if there are problems.
    """
    if not problems:
        return
    first, *others = problems
    evidence = [*first.evidence]
    for problem in others:
        evidence += [f"also: {problem.message}", *(f"  {line}" for line in problem.evidence)]
        if problem.hint:
            evidence.append(f"  hint: {problem.hint}")
    raise error(
        first.message,
        evidence=evidence,
        hint=first.hint,
        kind=kind,
        problems=[problem.to_dict() for problem in problems],
    )
