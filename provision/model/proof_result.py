"""The result of a proof: the verdict, and the circumstances in which it was given."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from provision.model.stored import Stored
from provision.model.verdict import Verdict
from provision.profile.reader import Mark
from provision.wording import count


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofResult(Stored):
    """A verdict with what it was given on."""

    SCHEMA: ClassVar[int] = Verdict.SCHEMA
    verdict: Annotated[Verdict, Mark.BESIDE]
    data: str
    """The data set that was trained on."""
    trained_by: str = ""
    """Who trained, in words; a build that was continued after an upgrade has none."""
    command: tuple[str, ...]
    modules: tuple[str, ...]
    """The modules that were loaded."""
    seconds: float
    date: str
    """The day, in UTC: `2026-11-22`."""
    findings: tuple[str, ...] = ()
    """What was worse than in the earlier proofs of the environment, by more than its site tolerates."""

    def __post_init__(self) -> None:
        """Without words for who trained, it was the ranks."""
        object.__setattr__(self, "trained_by", self.trained_by or count(self.verdict.figures.ranks, "rank"))

    def join(self, title: str, later: "ProofResult") -> "ProofResult":
        """With what was proved later in the same environment, with a framework or backend of this title."""
        return replace(
            self,
            verdict=self.verdict.join(title, later.verdict),
            trained_by=f"{self.trained_by} and, with {title}, {later.trained_by}",
            seconds=self.seconds + later.seconds,
        )

    def to_dict(self) -> dict[str, Any]:
        """The verdict's JSON, with the circumstances."""
        return {**Stored.to_dict(self), "seconds": round(self.seconds, 1)}

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
