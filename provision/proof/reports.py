"""Reads the reports of a proof: their fields, the figures of all together, and parts of them as text for a message.

The training program runs in the environment that is being proved, so any field may be missing or wrong, and no report decides
whether its own run was good: the checks compare the reports with each other. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from provision.model.operation import Prove
from provision.model.verdict import Figures
from provision.wording import count

LARGEST = 1e300
"""No figure comes near it, and sums and ratios of numbers below it are numbers."""
QUOTED_CHARS = 300
"""Longest quotation of an error in a message; the report contains all of it."""


@dataclass(frozen=True, slots=True)
class Report:
    """What one process reported. As text it is the rank, host and process ID, with which an operator can find the process."""

    fields: Mapping[str, Any]

    def __str__(self) -> str:
        rank = (
            f"rank {self.get('rank')} of {self.get('size', '?')}"
            if "rank" in self.fields
            else "a process without a rank"
        )
        return f"{rank} ({self.get('host', 'unknown host')}, pid {self.get('pid', '?')})"

    def get(self, key: str, default: object = None) -> Any:
        """A field as it is."""
        return self.fields.get(key, default)

    def part(self, key: str) -> Report:
        """A field that is an object; empty if it is not an object."""
        value = self.get(key)
        return Report(value if isinstance(value, Mapping) else {})

    def values(self, key: str) -> Sequence[Any]:
        """A field that is a list; empty if it is not a list."""
        value = self.get(key)
        return value if isinstance(value, Sequence) and not isinstance(value, str) else ()

    def texts(self, key: str) -> tuple[str, ...]:
        """The strings in a field that is a list; empty if it is not a list."""
        return tuple(value for value in self.values(key) if isinstance(value, str))

    def integer(self, key: str, default: int = -1) -> int:
        """An integer, `default` if it is not an integer."""
        value = self.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else default

    def text(self, key: str) -> str | None:
        """A non-empty string, and None for anything else."""
        value = self.get(key)
        return value if isinstance(value, str) and value else None

    def number(self, key: str) -> float | None:
        """A finite number, None if it is not a finite number."""
        return to_finite_number(self.get(key))

    @property
    def finished(self) -> bool:
        """Whether the process finished without an error."""
        return not self.get("error") and self.get("stage") == "done"

    @property
    def identity(self) -> tuple[int, str, int]:
        """The rank, host and process ID."""
        return self.integer("rank"), str(self.get("host")), self.integer("pid")

    @property
    def last_loss(self) -> float | None:
        """The loss of the last epoch."""
        losses = self.values("loss")
        return to_finite_number(losses[-1]) if losses else None


def to_finite_number(value: object) -> float | None:
    """Return a number as float, and None for anything else, NaN and the infinities included."""
    # Comparisons are false for NaN, and an int may be too large for a float.
    if isinstance(value, (int, float)) and not isinstance(value, bool) and -LARGEST <= value <= LARGEST:
        return float(value)
    return None


def to_vector(value: object) -> list[float] | None:
    """Return a non-empty list of finite numbers, or None."""
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        return None
    numbers = [number for number in map(to_finite_number, value) if number is not None]
    return numbers if len(numbers) == len(value) else None


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


def distinct_hosts(reports: Sequence[Report]) -> tuple[str, ...]:
    """The distinct hosts; the scheduler's names of the nodes if these are more.

    The hosts come first because a launcher of MPI may give the first node's `SLURMD_NODENAME` to all ranks.
    """
    hosts, nodes = (sorted({str(r.get(key)) for r in reports if r.get(key)}) for key in ("host", "node"))
    return tuple(nodes if len(nodes) > len(hosts) else hosts)


def choose_worst(choose: Callable[[Iterable[float]], float], values: Iterable[float | None]) -> float | None:
    """The extreme (`min` or `max`) of the values that are not None."""
    numbers = [value for value in values if value is not None]
    return choose(numbers) if numbers else None


def figures_of(finished: Sequence[Report]) -> Figures:
    """The figures of all ranks; if ranks differ, the worst."""
    digests = {report.text("weights_sha256") for report in finished}
    digest = next(iter(digests)) if len(digests) == 1 else None
    return Figures(
        ranks=len(finished),
        hosts=distinct_hosts(finished),
        gpus=sum(1 for report in finished if report.part("gpu").get("used")),
        accuracy=choose_worst(min, (report.number("accuracy") for report in finished)),
        loss_before=choose_worst(max, (report.number("loss_before") for report in finished)),
        loss_last=choose_worst(max, (report.last_loss for report in finished)),
        images_per_second=choose_worst(min, (report.number("images_per_second") for report in finished)),
        seconds=choose_worst(max, (report.number("seconds") for report in finished)),
        start_seconds=choose_worst(max, (report.number("start_seconds") for report in finished)),
        versions={str(k): str(v) for k, v in finished[0].part("versions").fields.items()} if finished else {},
        weights_sha256=digest,
    )


def start_lines(figures: Figures) -> tuple[str, ...]:
    """How long the ranks took to find each other, and what the import of the framework costs the shared file system."""
    start = figures.start_seconds
    lines = [f"  {'slowest rank':<18} {'not measured' if start is None else f'{start:.1f} s'}"]
    for way, reads in (("plain files", figures.reads_files), ("image", figures.reads_image)):
        if reads:
            lines.append(
                f"  {way:<18} {reads.lookups:,} look-ups, {reads.bytes / 1e6:,.0f} MB by one process; by a node "
                f"{reads.node_lookups:,} and {reads.node_bytes / 1e6:,.0f} MB; elsewhere {reads.elsewhere:,}"
            )
    return tuple(lines if figures.reads_files or figures.reads_image else [*lines, "  look-ups           not measured"])


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
