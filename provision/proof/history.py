"""Whether the figures of a proof are those of the same environment before: its own history is the reference. Pure.

ReFrame compares the figures of a test with references that a site writes by hand; here the earlier proofs are the reference.
`proof_table` is what `provision test --all` prints of both.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from provision.model.verdict import Figures, ProofResult
from provision.profile.arch import ProofSettings
from provision.wording import columns, count

LEAST = 3
"""With fewer comparable proofs before, nothing is judged: one slow day would be the reference."""
LATER_S = 5
"""A start that takes this much longer is worth a word: the seconds depend on what the page cache holds."""


def comparable(earlier: Sequence[ProofResult], now: ProofResult) -> list[ProofResult]:
    """The earlier proofs that passed with the same data, ranks, nodes and GPUs."""

    def shape(proof: ProofResult) -> tuple[object, ...]:
        figures = proof.verdict.figures
        return (proof.data, figures.ranks, len(figures.hosts), figures.gpus)

    return [proof for proof in earlier if proof.verdict.passed and shape(proof) == shape(now)]


def judge_history(earlier: Sequence[ProofResult], now: ProofResult, settings: ProofSettings) -> tuple[str, ...]:
    """What is worse than in the history by more than the site tolerates, as phrases; nothing if the history is too short."""
    before, findings = comparable(earlier, now), []

    def compare(read: Callable[[Figures], float | None]) -> tuple[float, float, str]:
        """A figure now, its median before and of how many proofs; 0 for both if too few have it."""
        known = [value for value in (read(one.verdict.figures) for one in before) if value is not None]
        value = read(now.verdict.figures)
        if len(known) < LEAST or value is None:
            return 0, 0, ""
        return value, statistics.median(known), f"the median of {count(len(known), 'earlier proof')}"

    kept, tolerated = 1 - settings.slowdown, f"{settings.slowdown:.0%} are tolerated"
    speed, usual, median = compare(lambda figures: figures.images_per_second or None)
    if speed < usual * kept:
        findings.append(f"{speed:,.0f} images/s are {1 - speed / usual:.0%} below {median} ({usual:,.0f}); {tolerated}")
    accuracy, usual, median = compare(lambda figures: figures.accuracy)
    if accuracy < usual - settings.accuracy_loss:
        findings.append(
            f"an accuracy of {accuracy:.1%} is below {median} ({usual:.1%}); {settings.accuracy_loss:.1%} less are tolerated"
        )
    start, usual, median = compare(lambda figures: figures.start_seconds)
    if start * kept > usual and start > usual + LATER_S:
        findings.append(f"the slowest rank was ready after {start:.1f} s, {median} is {usual:.1f} s; {tolerated}")
    for way, read in (
        ("plain files", lambda figures: figures.reads_files.node_lookups if figures.reads_files else None),
        ("the image", lambda figures: figures.reads_image.node_lookups if figures.reads_image else None),
    ):
        lookups, usual, median = compare(read)
        if lookups * kept > usual:
            findings.append(f"{lookups:,.0f} look-ups in {way} on a node, {median} is {usual:,.0f}; {tolerated}")
    return tuple(findings)


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
