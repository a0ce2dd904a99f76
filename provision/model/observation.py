"""An observation: one thing that was checked before a build, by `doctor` for a site and by `build` on the node that builds."""

from dataclasses import dataclass
from typing import Any, Literal

from provision.model.problem import Problem, ProblemKind
from provision.model.stored import Stored

State = Literal["good", "note", "bad"]
MARKS: dict[State, str] = {"good": "✓", "note": "!", "bad": "✗"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation(Stored):
    """One line of the report. A build fails if the state is `bad`, and does not if it is `note`.

    `check` is the stable name of a check of the node (`tmp-runs`); it is empty for the others.
    """

    group: str
    state: State
    message: str
    evidence: tuple[str, ...] = ()
    hint: str | None = None
    check: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return this observation as plain JSON values."""
        return {**Stored.to_dict(self), "check": self.check or None}

    def problem(self, kind: ProblemKind) -> Problem:
        """The same as a problem, which stops a build."""
        return Problem(
            kind=kind,
            subject=self.check.split("-")[0] or self.group,
            message=self.message,
            evidence=self.evidence,
            hint=self.hint,
        )
