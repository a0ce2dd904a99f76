"""Checks scripts that users wrote: a job script and the training scripts that it starts. Pure: texts in, findings out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Literal

from provision.wording import count

Weight = Literal["error", "warning", "advice"]
"""error: the job is refused, fails, or computes something else than was meant. warning: it loses time, files or resources, or
fails under conditions that the scripts do not show. advice: it works, and would be safer or easier to repeat otherwise."""
WEIGHTS: tuple[Weight, ...] = ("error", "warning", "advice")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a rule found: how much it weighs, the file and line, what is wrong, the text that shows it, and the fix."""

    weight: Weight
    rule: str
    file: str
    line: int
    message: str
    evidence: str
    fix: str

    def to_dict(self) -> dict[str, object]:
        """The finding as it is in `--json`."""
        return asdict(self)

    def __str__(self) -> str:
        shown = f": {self.evidence}" if self.evidence else ""
        return f"{self.file}:{self.line}: {self.weight}: {self.rule}: {self.message}{shown}"


def sort_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings without repeats, by line."""
    return tuple(sorted(dict.fromkeys(findings), key=lambda finding: (finding.line, finding.rule)))


def count_findings(findings: Iterable[Finding]) -> str:
    """How many findings of each weight there are, in words: `2 errors, 1 warning`."""
    weights = [finding.weight for finding in findings]
    plurals = {"advice": "advice"}
    return ", ".join(
        count(weights.count(weight), weight, plurals.get(weight)) for weight in WEIGHTS if weight in weights
    )
