"""What a site has built, for lists and pages: each environment with its state, record and proofs, and all as a table. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from provision.model.layout import EnvironmentId
from provision.model.record import Record
from provision.model.verdict import ProofResult
from provision.wording import columns, count


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


TITLES = ("STATE", "MODULE", "ARCH", "FINGERPRINT", "MARKS", "STACK", "BUILT", "SIZE", "PROOF")
# Which columns a narrow terminal leaves out, in this order; `show` has all of them.
LEFT_OUT = ("STACK", "SIZE", "BUILT", "PROOF", "MARKS", "FINGERPRINT")
ORDERS: dict[str, Callable[[Entry], Any]] = {
    "name": lambda entry: str(entry.environment),
    "age": lambda entry: (entry.age_s is None, entry.age_s or 0.0),
    "size": lambda entry: -(entry.size_bytes or 0),
    "state": lambda entry: (entry.state, str(entry.environment)),
}


def select(
    entries: Sequence[Entry],
    *,
    arch: str | None = None,
    stack: str | None = None,
    state: str | None = None,
    sort: str = "name",
) -> list[Entry]:
    """The environments of this arch, stack and state, in this order: by name, the newest, or the largest first."""
    chosen = [
        entry
        for entry in entries
        if arch in (None, entry.environment.arch)
        and (stack is None or (entry.record is not None and entry.record.stack == stack))
        and state in (None, entry.state)
    ]
    return sorted(chosen, key=ORDERS[sort])


def table(entries: Sequence[Entry], width: int | None) -> list[str]:
    """A line for each environment below the titles. Columns that do not fit in `width` are left out; None: no limit."""
    cells = dict(zip(TITLES, zip(*map(_row, entries), strict=True), strict=True))
    widths = {title: max(len(title), *map(len, column)) for title, column in cells.items()}
    shown = [title for title in TITLES if any(cells[title])]
    for title in LEFT_OUT:
        if width is not None and sum(widths[name] + 2 for name in shown) - 2 > width and title in shown:
            shown.remove(title)
    return columns([shown, *zip(*(cells[title] for title in shown), strict=True)])


def _row(entry: Entry) -> tuple[str, ...]:
    env = entry.environment
    return (
        entry.state,
        f"{env.name}/{env.version}",
        env.arch,
        env.fingerprint,
        ", ".join(entry.marks),
        entry.record.stack if entry.record else "",
        f"{age_words(entry.age_s)} ago" if entry.age_s is not None else "",
        size_words(entry),
        entry.why or proof_words(entry) or "no proof",
    )
