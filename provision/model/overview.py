"""What a site has built, for lists and pages: each environment with its state, its record and the history of its proofs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from provision.model.layout import EnvironmentId
from provision.model.proof_result import ProofResult
from provision.model.record import Record
from provision.wording import count


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One environment: its state in a word, the module that points to it, and what its files say.

    `proofs` are its proofs by time, the one of the build first; `size_bytes` is None before its files were counted,
    and `age_s`, the seconds since it was built, before it has a record.
    """

    environment: EnvironmentId
    state: str
    module: str | None
    record: Record | None
    proofs: tuple[ProofResult, ...] = ()
    size_bytes: int | None = None
    age_s: float | None = None
    why: str | None = None
    """Why it is broken, or who builds it."""
    marks: Mapping[str, str] = field(default_factory=dict)
    """`default`, `hidden`, `deprecated` and `pinned`, each with its text; that of the first two is empty."""


def age_words(seconds: float) -> str:
    """A span of time in its largest unit: `1 min` at least, `3 h`, `12 days`, `2 years`."""
    for size, one, many in ((31_556_952, "year", "years"), (86_400, "day", "days"), (3600, "h", "h")):
        if seconds >= size:
            number = int(seconds // size)
            return f"{number} {one if number == 1 else many}"
    return f"{max(1, int(seconds // 60))} min"


def proof_words(entry: Entry) -> str:
    """The last proof of an environment in a few words; empty if there was none."""
    last = entry.proofs[-1] if entry.proofs else entry.record.verdict if entry.record else None
    if last is None:
        return ""
    if not last.verdict.passed:
        return "the last proof failed"
    figures = last.verdict.figures
    words = [count(figures.ranks, "rank")]
    words += [f"{figures.accuracy:.1%}"] if figures.accuracy is not None else []
    words += [f"{figures.images_per_second:,.0f} images/s"] if figures.images_per_second else []
    words += ["worse than before"] if last.findings else []
    return ", ".join(words)


def mark_words(marks: Mapping[str, str]) -> str:
    """The marks of an environment with their texts: `default, pinned: paper of the climate group`."""
    separator = {"deprecated": " ", "pinned": ": "}
    return ", ".join(f"{mark}{separator.get(mark, '')}{text}" for mark, text in marks.items())


def size_words(entry: Entry) -> str:
    """The size of an environment; empty if it is not known."""
    return f"{entry.size_bytes / 1e9:.1f} GB" if entry.size_bytes else ""
