"""Reads the reports of a proof: their fields, the figures of all together, and parts of them as text for a message.

The training program runs in the environment that is being proved, so any field may be missing or wrong, and no report decides
whether its own run was good: the checks compare the reports with each other. Pure.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from provision.model.operation import Prove
from provision.model.verdict import Figures
from provision.wording import count

Report = Mapping[str, Any]
"""One process's report, as its JSON."""
LARGEST = 1e300
"""No figure comes near it, and sums and ratios of numbers below it are numbers."""
QUOTED_CHARS = 300
"""Longest quotation of an error in a message; the report contains all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What the checks are about: what was planned, and what the processes reported."""

    proof: Prove
    packages: tuple[str, ...]
    """The packages of which a version must be known."""
    reports: Sequence[Report]
    """One for each process, in any order, including those of processes that failed."""
    finished: Sequence[Report]
    """The reports of processes that finished without an error, in the order of their ranks."""
    min_accuracy: float
    """Share of test images, 0..1, that every rank must recognise."""
    stalled: str | None
    """How the first try stalled, if these reports are of the second one."""


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


def figures_of(finished: Sequence[Report]) -> Figures:
    """The figures of all ranks; if ranks differ, the worst."""
    digests = {read_text(report, "weights_sha256") for report in finished}
    digest = next(iter(digests)) if len(digests) == 1 else None
    return Figures(
        ranks=len(finished),
        hosts=distinct_hosts(finished),
        gpus=sum(1 for report in finished if read_gpu(report).get("used")),
        accuracy=choose_worst(min, (read_number(report, "accuracy") for report in finished)),
        loss_before=choose_worst(max, (read_number(report, "loss_before") for report in finished)),
        loss_last=choose_worst(max, (read_last_loss(report) for report in finished)),
        images_per_second=choose_worst(min, (read_number(report, "images_per_second") for report in finished)),
        seconds=choose_worst(max, (read_number(report, "seconds") for report in finished)),
        start_seconds=choose_worst(max, (read_number(report, "start_seconds") for report in finished)),
        versions={str(k): str(v) for k, v in read_mapping(finished[0], "versions").items()} if finished else {},
        weights_sha256=digest,
    )


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
