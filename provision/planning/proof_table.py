"""The table of `provision test --all`: each environment, what became of its proof, its figures now and before. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from provision.model.proof_result import ProofResult
from provision.proof.history import comparable
from provision.wording import columns

Row = tuple[str, str, str, ProofResult | None, Sequence[ProofResult]]
"""The arch, the environment, what became of it, the new proof and the earlier ones."""
HEAD = ("STATE", "ENVIRONMENT", "IMAGES/S", "BEFORE", "ACCURACY", "BEFORE")


def proof_table(rows: Sequence[Row]) -> list[str]:
    """The lines of the table, each finding below its environment, and the totals."""
    head, *lines_of_rows = columns([HEAD, *map(_cells, rows)])
    lines = [head]
    for (_, _, _, proof, _), line in zip(rows, lines_of_rows, strict=True):
        lines += [line, *(f"    {finding}" for finding in (proof.findings if proof else ()))]
    states = [row[2] for row in rows]
    totals = [f"{states.count(state)} {state}" for state in dict.fromkeys(states)]
    return [*lines, ", ".join(totals)]


def _cells(row: Row) -> tuple[str, ...]:
    _, name, state, proof, earlier = row
    if proof is None or not proof.verdict.passed:
        return (state, name, "", "", "", "")
    before = [one.verdict.figures for one in comparable(earlier, proof)]
    figures = proof.verdict.figures
    return (
        state,
        name,
        f"{figures.images_per_second:,.0f}" if figures.images_per_second else "",
        _median([one.images_per_second for one in before if one.images_per_second], "{:,.0f}"),
        f"{figures.accuracy:.1%}" if figures.accuracy is not None else "",
        _median([one.accuracy for one in before if one.accuracy is not None], "{:.1%}"),
    )


def _median(values: Sequence[float], words: str) -> str:
    return words.format(statistics.median(values)) if values else ""
