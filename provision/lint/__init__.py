"""Checks scripts that users wrote: a job script and the training scripts that it starts. Pure: texts in, findings out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from provision.lint.rules import RULES, WEIGHTS, Weight
from provision.wording import count


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a rule found: the file and line, what is wrong, the text that shows it, and how to fix it."""

    rule: str
    file: str
    line: int
    message: str
    evidence: str
    fix: str

    @property
    def weight(self) -> Weight:
        """How much it weighs, which depends on the rule alone."""
        return RULES[self.rule].weight

    def to_dict(self) -> dict[str, object]:
        """The finding as it is in `--json`."""
        return {"weight": self.weight, **asdict(self)}

    def __str__(self) -> str:
        shown = f": {self.evidence}" if self.evidence else ""
        return f"{self.file}:{self.line}: {self.weight}: {self.rule}: {self.message}{shown}"


def count_findings(findings: Iterable[Finding]) -> str:
    """How many findings of each weight there are, in words: `2 errors, 1 warning`."""
    weights = [finding.weight for finding in findings]
    plurals = {"advice": "advice"}
    return ", ".join(
        count(weights.count(weight), weight, plurals.get(weight)) for weight in WEIGHTS if weight in weights
    )
