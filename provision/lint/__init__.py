"""Checks scripts that users wrote: a job script and the training script that it starts. Pure: texts in, findings out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One fault: its rule, the file and line, what is wrong, the text that shows it, and how to fix it."""

    rule: str
    file: str
    line: int
    message: str
    evidence: str
    fix: str

    def __str__(self) -> str:
        shown = f": {self.evidence}" if self.evidence else ""
        return f"{self.file}:{self.line}: {self.rule}: {self.message}{shown}"
