"""Reads the report of a process of the proof.

The training program runs in the environment that is being proved, so any field may be missing or wrong, and no report decides
whether its own run was good: the checks compare the reports with each other. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

Report = Mapping[str, Any]
"""One process's report, as its JSON."""
LARGEST = 1e300
"""No figure comes near it, and sums and ratios of numbers below it are numbers."""


def is_finished(report: Report) -> bool:
    """Whether a process finished without an error."""
    return not report.get("error") and report.get("stage") == "done"


def finished_reports(reports: Sequence[Report]) -> list[Report]:
    """The processes that finished without an error, in the order of their ranks."""
    return sorted(
        filter(is_finished, reports),
        key=lambda report: (read_integer(report, "rank", -1), str(report.get("host")), read_integer(report, "pid", -1)),
    )


def read_mapping(report: Report, key: str) -> Mapping[str, Any]:
    """A part of a report that is an object; empty if it is not an object."""
    value = report.get(key)
    return value if isinstance(value, Mapping) else {}


def read_list(report: Report, key: str) -> Sequence[Any]:
    """A part of a report that is a list; empty if it is not a list."""
    value = report.get(key)
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def read_texts(report: Report, key: str) -> tuple[str, ...]:
    """The strings in a part of a report that is a list; empty if it is not a list."""
    return tuple(value for value in read_list(report, key) if isinstance(value, str))


def read_gpu(report: Report) -> Mapping[str, Any]:
    """What a rank reports about its GPU."""
    return read_mapping(report, "gpu")


def read_integer(report: Report, key: str, default: int) -> int:
    """An integer of a report, `default` if it is not an integer."""
    value = report.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def read_text(report: Report, key: str) -> str | None:
    """Return a non-empty string, and None for anything else."""
    value = report.get(key)
    return value if isinstance(value, str) and value else None


def to_finite_number(value: object) -> float | None:
    """Return a number as float, and None for anything else, NaN and the infinities included."""
    # Comparisons are false for NaN, and an int may be too large for a float.
    if isinstance(value, (int, float)) and not isinstance(value, bool) and -LARGEST <= value <= LARGEST:
        return float(value)
    return None


def read_number(report: Report, key: str) -> float | None:
    """A finite number of a report, None if it is not a finite number."""
    return to_finite_number(report.get(key))


def read_last_loss(report: Report) -> float | None:
    """The loss of the last epoch."""
    losses = report.get("loss")
    return to_finite_number(losses[-1]) if isinstance(losses, Sequence) and losses else None


def to_vector(value: object) -> list[float] | None:
    """Return a non-empty list of finite numbers, or None."""
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        return None
    numbers = [number for number in map(to_finite_number, value) if number is not None]
    return numbers if len(numbers) == len(value) else None


def read_peers(report: Report) -> list[tuple[int, str, int]]:
    """The ranks, hosts and process ids that a rank saw."""
    peers = report.get("peers")
    if not isinstance(peers, Sequence) or isinstance(peers, str):
        return []
    return sorted(
        (peer[0], str(peer[1]), peer[2])
        for peer in peers
        if isinstance(peer, Sequence) and len(peer) == 3 and isinstance(peer[0], int) and isinstance(peer[2], int)
    )


def distinct_hosts(reports: Sequence[Report]) -> tuple[str, ...]:
    """The distinct hosts; the scheduler's names of the nodes if these are more.

    The hosts come first because a launcher of MPI may give the first node's `SLURMD_NODENAME` to all ranks.
    """
    hosts, nodes = (sorted({str(r[key]) for r in reports if r.get(key)}) for key in ("host", "node"))
    return tuple(nodes if len(nodes) > len(hosts) else hosts)


def vectors_agree(seen: Sequence[float], wanted: Sequence[float], tolerance: float) -> bool:
    """Whether two vectors are the same within a relative tolerance."""
    return len(seen) == len(wanted) and all(
        math.isclose(a, b, rel_tol=tolerance, abs_tol=0.0) for a, b in zip(seen, wanted, strict=True)
    )


def choose_worst(choose: Callable[[Iterable[float]], float], values: Iterable[float | None]) -> float | None:
    """The extreme (`min` or `max`) of the values that are not None."""
    numbers = [value for value in values if value is not None]
    return choose(numbers) if numbers else None
