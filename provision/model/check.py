"""A check: one question put to a machine, an environment or the reports of a proof, and whether the answer is as it must be."""

from dataclasses import dataclass
from typing import Any, Literal

from provision.model.stored import Stored

State = Literal["good", "note", "bad"]
MARKS: dict[State, str] = {"good": "✓", "note": "!", "bad": "✗"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check(Stored):
    """The question by its name, and the answer in words: what was expected and what was seen.

    `name` is stable: programs may look for it. The words of `message` may change.
    """

    name: str
    """Of a changed file, its path; empty if programs have no reason to look for it."""
    passed: bool
    message: str
    hint: str | None = None
    skipped: bool = False
    """Whether this software has no such feature, so that nothing was checked. A skipped check has passed."""
    figure: float | None = None
    """The number that was measured, if the check compares numbers: the largest difference from what it should be."""
    noted: bool = False
    """Whether a person should read the answer although nothing fails because of it."""
    evidence: tuple[str, ...] = ()
    group: str = ""
    """What it belongs to: a part of the doctor's report, the package of a file, the environment of a module."""

    @property
    def state(self) -> State:
        """`bad`: a build, a proof or an environment fails; `note`: it does not."""
        return "bad" if not self.passed else "note" if self.noted else "good"

    def to_lines(self, *, named: bool = False) -> list[str]:
        """The check as people read it, with its name if it is `named`; the hint is for one that is not good."""
        head = f"{MARKS[self.state]} {f'{self.name}: ' if named else ''}{self.message}"
        lines = [head, *(f"    {line}" for line in self.evidence)]
        return [*lines, f"    hint: {self.hint}"] if self.hint and self.state != "good" else lines

    def to_dict(self) -> dict[str, Any]:
        """A check of a proof as plain JSON values."""
        return {key: value for key, value in Stored.to_dict(self).items() if key not in ("noted", "evidence", "group")}

    def to_observation(self) -> dict[str, Any]:
        """A check of a machine or a profile as plain JSON values."""
        return {
            "group": self.group,
            "state": self.state,
            "message": self.message,
            "evidence": list(self.evidence),
            "hint": self.hint,
            "check": self.name or None,
        }


def good(name: str, message: str) -> Check:
    """A check that has passed."""
    return Check(name=name, passed=True, message=message)


def bad(name: str, message: str, hint: str | None = None) -> Check:
    """A check that has failed."""
    return Check(name=name, passed=False, message=message, hint=hint)


def judged(name: str, passed: object, message: str, hint: str | None = None) -> Check:
    """A check that has passed if `passed` is true; the hint is for one that has not."""
    return Check(name=name, passed=bool(passed), message=message, hint=None if passed else hint)


def skipped(name: str, message: str) -> Check:
    """A check that this software or machine cannot answer; the message says why."""
    return Check(name=name, passed=True, message=message, skipped=True)


def observed(group: str, state: State, message: str, *evidence: str, hint: str | None = None, name: str = "") -> Check:
    """A check of a group with what was seen: `bad` if it has failed, `note` if it has not but a person should know."""
    return Check(
        name=name,
        passed=state != "bad",
        noted=state == "note",
        message=message,
        evidence=evidence,
        hint=hint,
        group=group,
    )
