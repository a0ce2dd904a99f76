"""The environments of a site as a table for a terminal of any width. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from provision.model.overview import Entry, age_words, proof_words, size_words
from provision.wording import columns

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
