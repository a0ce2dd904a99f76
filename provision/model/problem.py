"""A problem: something that stops a plan or a job, with its evidence and what to type."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something that stops a plan: what, the evidence, and what to type."""

    subject: str
    message: str
    evidence: tuple[str, ...] = ()
    hint: str | None = None
