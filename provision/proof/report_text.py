"""Parts of a report as text for a message, cut to a readable length. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from provision.proof.reports import Report
from provision.wording import count

QUOTED_CHARS = 300
"""Longest quotation of an error in a message; the report contains all of it."""


def name_process(report: Report) -> str:
    """The rank, host and process ID, with which an operator can find a process."""
    rank = f"rank {report['rank']} of {report.get('size', '?')}" if "rank" in report else "a process without a rank"
    return f"{rank} ({report.get('host', 'unknown host')}, pid {report.get('pid', '?')})"


def quote_error(error: object) -> str:
    """The error on one line, cut to a readable length."""
    text = " ".join(str(error).split())
    return text if len(text) <= QUOTED_CHARS else f"{text[: QUOTED_CHARS - 2]} …"


def list_values(values: Sequence[object], most: int = 8) -> str:
    """Join values by commas, with a count instead of a long tail: jobs have hundreds of ranks."""
    words = [str(value) for value in values[:most]]
    if len(values) > most:
        words.append(f"… ({len(values)} in all)")
    return ", ".join(words) or "none"


def list_counts(words: Iterable[str]) -> str:
    """Words with the number of times that each occurs."""
    return list_values([f"{word} ({count(times, 'time')})" for word, times in sorted(Counter(words).items())])


def format_vector(values: Sequence[float]) -> str:
    """A vector as text."""
    return f"[{list_values([f'{value:g}' for value in values], most=4)}]"


def format_peers(peers: Sequence[tuple[int, str, int]]) -> str:
    """Peers as text."""
    return list_values([f"rank {rank} ({host}, pid {pid})" for rank, host, pid in peers], most=4)


def format_figure(value: float | None) -> str:
    """A figure as text."""
    return "no finite number" if value is None else f"{value:.4f}"
