"""A verdict: the checks of a proof with their results, and the figures that the run measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from provision.model import stored

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One question put to the reports, with the answer in words: what was expected and what was seen.

    `name` is stable: programs may look for it. The words of `message` may change.
    """

    name: str
    passed: bool
    message: str
    hint: str | None = None
    skipped: bool = False
    """Whether this software has no such feature, so that nothing was checked. A skipped check has passed."""
    figure: float | None = None
    """The number that was measured, if the check compares numbers: the largest difference from what it should be."""

    def to_dict(self) -> dict[str, Any]:
        """Return this check as plain JSON values."""
        return {
            "name": self.name,
            "passed": self.passed,
            "message": self.message,
            "hint": self.hint,
            "skipped": self.skipped,
            "figure": self.figure,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Check:
        """Read back what `to_dict` returned. Raises `ValueError` if it is damaged."""
        if not isinstance(data, Mapping) or not isinstance(data.get("passed"), bool):
            raise ValueError(f"{data!r} is not a check")
        return cls(
            name=stored.text(data, "name"),
            passed=data["passed"],
            message=stored.text(data, "message"),
            hint=stored.optional_text(data, "hint"),
            skipped=bool(data.get("skipped", False)),
            figure=stored.optional_number(data, "figure"),
        )


def good(name: str, message: str) -> Check:
    """A check that has passed."""
    return Check(name=name, passed=True, message=message)


def bad(name: str, message: str, hint: str | None = None) -> Check:
    """A check that has failed."""
    return Check(name=name, passed=False, message=message, hint=hint)


def judged(name: str, passed: object, message: str, hint: str | None = None) -> Check:
    """A check that has passed if `passed` is true; the hint is for one that has not."""
    return Check(name=name, passed=bool(passed), message=message, hint=None if passed else hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What the run measured, for records and for users; no figure alone decides whether the proof passes.

    If ranks report different figures, the worst is given: lowest accuracy, lowest speed, highest loss. A figure is None
    if no finished report contains a usable number.
    """

    ranks: int
    """Processes that finished, whether or not they were connected."""
    hosts: tuple[str, ...]
    """Distinct host names, sorted. On an emulated cluster all nodes have the same name."""
    gpus: int
    """Processes that used a GPU."""
    accuracy: float | None
    """Share of test images recognised, 0..1."""
    loss_before: float | None
    loss_last: float | None
    images_per_second: float | None
    """The speed of all ranks together, over all epochs except the first."""
    seconds: float | None
    """From the start of the slowest process to its end, imports included."""
    versions: Mapping[str, str]
    """The versions that the first rank reports: python, numpy, tensorflow, keras, horovod, mpi."""
    weights_sha256: str | None
    """Digest of the trained weights, if it is the same on all ranks."""

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain JSON values."""
        return {
            "ranks": self.ranks,
            "hosts": list(self.hosts),
            "gpus": self.gpus,
            "accuracy": self.accuracy,
            "loss_before": self.loss_before,
            "loss_last": self.loss_last,
            "images_per_second": self.images_per_second,
            "seconds": self.seconds,
            "versions": dict(self.versions),
            "weights_sha256": self.weights_sha256,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Figures:
        """Read back what `to_dict` returned. Raises `ValueError` if it is damaged."""
        versions = stored.mapping(data, "versions")
        return cls(
            ranks=int(stored.number(data, "ranks")),
            hosts=stored.texts(data, "hosts"),
            gpus=int(stored.number(data, "gpus")),
            accuracy=stored.optional_number(data, "accuracy"),
            loss_before=stored.optional_number(data, "loss_before"),
            loss_last=stored.optional_number(data, "loss_last"),
            images_per_second=stored.optional_number(data, "images_per_second"),
            seconds=stored.optional_number(data, "seconds"),
            versions={key: stored.text(versions, key) for key in versions},
            weights_sha256=stored.optional_text(data, "weights_sha256"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The outcome of a proof: passed only if there are checks and every one of them passed."""

    checks: tuple[Check, ...]
    figures: Figures

    @property
    def passed(self) -> bool:
        """Whether the environment is proved."""
        return bool(self.checks) and all(check.passed for check in self.checks)

    @property
    def failures(self) -> tuple[Check, ...]:
        """The checks that failed, the likeliest cause first."""
        return tuple(check for check in self.checks if not check.passed)

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as plain JSON values, for the record of the environment."""
        return {
            "schema": SCHEMA,
            "passed": self.passed,
            "checks": [check.to_dict() for check in self.checks],
            "figures": self.figures.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Verdict:
        """Read back what `to_dict` returned.

        Raises:
            ValueError: the schema is another one, or the stored outcome is not the one that the checks give. Such a
                record was written by another version or edited, and must not pass for a proof.
        """
        if data.get("schema") != SCHEMA:
            raise ValueError(f"verdict has schema {data.get('schema')!r}, expected {SCHEMA}")
        figures = Figures.from_dict(stored.mapping(data, "figures"))
        verdict = cls(checks=tuple(map(Check.from_dict, stored.sequence(data, "checks"))), figures=figures)
        if verdict.passed is not data.get("passed"):
            raise ValueError(f"verdict says passed = {data.get('passed')!r}, its checks say {verdict.passed!r}")
        return verdict
