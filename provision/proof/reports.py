"""What a rank reported, read as testimony: any field may be missing or odd. And the words to tell it in. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

Report = Mapping[str, Any]
"""One process's report, as its JSON."""

QUOTED_CHARS = 300
"""Longest piece of a foreign error text in a message; the whole of it is in the report."""


def is_finished(report: Report) -> bool:
    """Whether a process came to its end without an error."""
    return not report.get("error") and report.get("stage") == "done"


def finished(reports: Sequence[Report]) -> list[Report]:
    """The processes that came to their end without an error, in the order of their ranks."""
    return sorted(
        filter(is_finished, reports),
        key=lambda report: (whole(report, "rank", -1), str(report.get("host")), whole(report, "pid", -1)),
    )


def mapping(report: Report, key: str) -> Mapping[str, Any]:
    """A part of a report that is an object; nothing where it is none."""
    value = report.get(key)
    return value if isinstance(value, Mapping) else {}


def listing(report: Report, key: str) -> Sequence[Any]:
    """A part of a report that is a list; an empty one where it is none."""
    value = report.get(key)
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def gpu(report: Report) -> Mapping[str, Any]:
    """The GPU that a rank took, in its words."""
    return mapping(report, "gpu")


def whole(report: Report, key: str, default: int) -> int:
    """A whole number of a report, `default` where it is none."""
    value = report.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def text_of(report: Report, key: str) -> str | None:
    """Return a non-empty string, and None for anything else."""
    value = report.get(key)
    return value if isinstance(value, str) and value else None


def finite(value: object) -> float | None:
    """Return a number as float, and None for anything else, NaN and the infinities included."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    return None


def number(report: Report, key: str) -> float | None:
    """A finite number of a report, None where it is none."""
    return finite(report.get(key))


def last_loss(report: Report) -> float | None:
    """The loss of the last epoch."""
    losses = report.get("loss")
    return finite(losses[-1]) if isinstance(losses, Sequence) and losses else None


def vector(value: object) -> list[float] | None:
    """Return a non-empty list of finite numbers, or None."""
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        return None
    numbers = [number for number in map(finite, value) if number is not None]
    return numbers if len(numbers) == len(value) else None


def peers(report: Report) -> list[tuple[int, str, int]]:
    """The ranks, hosts and process ids that a rank saw."""
    peers = report.get("peers")
    if not isinstance(peers, Sequence) or isinstance(peers, str):
        return []
    return sorted(
        (peer[0], str(peer[1]), peer[2])
        for peer in peers
        if isinstance(peer, Sequence) and len(peer) == 3 and isinstance(peer[0], int) and isinstance(peer[2], int)
    )


def hosts(reports: Sequence[Report]) -> tuple[str, ...]:
    """The distinct hosts; where all have one name, the scheduler's names of the nodes, if it says several.

    In this order: a launcher of MPI's own may hand the first node's `SLURMD_NODENAME` on to all ranks.
    """
    hosts, nodes = (sorted({str(r[key]) for r in reports if r.get(key)}) for key in ("host", "node"))
    return tuple(nodes if len(nodes) > len(hosts) else hosts)


def agree(seen: Sequence[float], wanted: Sequence[float], tolerance: float) -> bool:
    """Whether two vectors are the same within a relative tolerance."""
    return len(seen) == len(wanted) and all(
        math.isclose(a, b, rel_tol=tolerance, abs_tol=0.0) for a, b in zip(seen, wanted, strict=True)
    )


def worst(choose: Callable[[Iterable[float]], float], values: Iterable[float | None]) -> float | None:
    """The chosen extreme of the values that are there."""
    numbers = [value for value in values if value is not None]
    return choose(numbers) if numbers else None


# --- words ------------------------------------------------------------------------------------------------------------


def who(report: Report) -> str:
    """Name a process the way an operator can find it."""
    rank = f"rank {report['rank']} of {report.get('size', '?')}" if "rank" in report else "a process without a rank"
    return f"{rank} ({report.get('host', 'unknown host')}, pid {report.get('pid', '?')})"


def quote(error: object) -> str:
    """The error on one line, cut to a readable length."""
    text = " ".join(str(error).split())
    return text if len(text) <= QUOTED_CHARS else f"{text[: QUOTED_CHARS - 2]} …"


def listed(values: Sequence[object], most: int = 8) -> str:
    """Join values by commas, with a count instead of a long tail: jobs have hundreds of ranks."""
    words = [str(value) for value in values[:most]]
    if len(values) > most:
        words.append(f"… ({len(values)} in all)")
    return ", ".join(words) or "none"


def counted(words: Iterable[str]) -> str:
    """Words with how often each came."""
    return listed([f"{word} ({times} times)" for word, times in sorted(Counter(words).items())])


def numbers(values: Sequence[float]) -> str:
    """A vector as text."""
    return f"[{listed([f'{value:g}' for value in values], most=4)}]"


def peer_words(peers: Sequence[tuple[int, str, int]]) -> str:
    """Peers as text."""
    return listed([f"rank {rank} ({host}, pid {pid})" for rank, host, pid in peers], most=4)


def decimal(value: float | None) -> str:
    """A figure as text."""
    return "no finite number" if value is None else f"{value:.4f}"
