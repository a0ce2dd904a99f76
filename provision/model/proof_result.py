"""The result of a proof: the verdict, and the circumstances in which it was given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from provision.model import stored
from provision.model.verdict import Verdict
from provision.wording import count


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofResult:
    """A verdict with what it was given on."""

    verdict: Verdict
    data: str
    """The data set that was trained on."""
    trained_by: str
    """Who trained, in words."""
    command: tuple[str, ...]
    modules: tuple[str, ...]
    """The modules that were loaded."""
    seconds: float
    date: str
    """The day, in UTC: `2026-11-22`."""
    findings: tuple[str, ...] = ()
    """What was worse than in the earlier proofs of the environment, by more than its site tolerates."""

    def to_dict(self) -> dict[str, Any]:
        """The verdict's JSON, with the circumstances."""
        return {
            **self.verdict.to_dict(),
            "data": self.data,
            "trained_by": self.trained_by,
            "command": list(self.command),
            "modules": list(self.modules),
            "seconds": round(self.seconds, 1),
            "date": self.date,
            "findings": list(self.findings),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ProofResult:
        """Read back what `to_dict` returned.

        Raises:
            ValueError: it is damaged, or its outcome is not the one that its checks give.
        """
        verdict = Verdict.from_dict(data)
        return cls(
            verdict=verdict,
            data=stored.text(data, "data"),
            # A build that was continued after an upgrade has none.
            trained_by=stored.optional_text(data, "trained_by") or count(verdict.figures.ranks, "rank"),
            command=stored.texts(data, "command"),
            modules=stored.texts(data, "modules"),
            seconds=stored.number(data, "seconds"),
            date=stored.text(data, "date"),
            findings=stored.texts(data, "findings") if "findings" in data else (),
        )

    @property
    def summary(self) -> str:
        """The line that `module help` and `list` show of a proof that passed."""
        figures = self.verdict.figures
        nodes, speed = len(figures.hosts), figures.images_per_second
        agreed = ", weights identical" if any(check.name == "weights" for check in self.verdict.checks) else ""
        accuracy = "an unknown accuracy" if figures.accuracy is None else f"{figures.accuracy:.1%}"
        return (
            f"{self.trained_by} on {nodes} node{'s' * (nodes != 1)} trained {self.data} to "
            f"{accuracy}{f' at {speed:.0f} images/s' if speed else ''}{agreed} ({self.date})"
        )
