"""The scaling of one program: a table and a drawing of its runs on different numbers of GPUs. Pure.

A run is what a job with `--record` wrote to its output folder: its shape and seconds, the load of its GPUs, and the report of
its training script. The best run of each number of workers is compared with the best on the fewest workers.
Source of the table's form: NYU HPC's TensorFlow page, after Princeton's multi_gpu_training.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from provision.errors import ConfigError

# Below this efficiency the input is probably too slow; the page calls its 75 % on 3 GPUs not good.
GOOD = 0.8
# nvidia-smi's line: the time, the GPU, its use, its memory's use. It begins at the start of a line, so that a long text
# without commas is read once.
UTILIZATION = re.compile(r"^([^,\n]+), *\d+, *(\d{1,3}) *%", re.MULTILINE)
# nvidia-smi's time, to the second: such texts are in the order of the times.
CLOCK = re.compile(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d")
# Larger numbers are damage: with them a quotient is infinite, or zero.
LARGEST = 1e9
SMALLEST_S = 0.001
# The keys under which a record or a report has the version of its framework.
FRAMEWORKS = (("tensorflow", "TensorFlow"), ("pytorch", "PyTorch"))
COLUMNS = ("run", "nodes", "tasks", "CPUs", "GPUs", "seconds", "images/s", "GPU use", "speed-up", "efficiency")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """One run. `cpus` is for one task and `gpus` for one node. `seconds` is the training if reported, otherwise the whole run.

    `images_per_second` and `gpu_use` (a share, 0 to 1) are None if they were not recorded, and so are the framework with its
    version, the nodes (in the scheduler's notation), the model of the GPUs, and the batch that the training script reported.
    `gpu_use` is that of all nodes, while the training script trained if it reported when that was.
    """

    name: str
    program: str
    nodes: int
    tasks: int
    cpus: int
    gpus: int
    seconds: float
    images_per_second: float | None = None
    gpu_use: float | None = None
    framework: str | None = None
    hosts: str | None = None
    batch: int | None = None
    gpu: str | None = None

    @property
    def workers(self) -> int:
        """The number of GPUs, or of tasks if there are no GPUs."""
        return self.nodes * self.gpus or self.tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The best run on a number of workers; `efficiency` is the speed-up as a share of the ideal."""

    run: RecordedRun
    speed_up: float
    efficiency: float


def read_run(
    name: str, record: Mapping[str, Any], report: Mapping[str, Any] | None, gpu_csv: str | None
) -> RecordedRun:
    """The run in a job's record, with the report of its training script and the lines of nvidia-smi.

    Raises:
        ConfigError: a value is missing, is not a number, or cannot be what a run measured.
    """
    reported = report or {}

    def number(key: str, *places: Mapping[str, Any], at_least: float = 0) -> float:
        for place in places:
            value = place.get(key)
            if isinstance(value, int | float) and not isinstance(value, bool) and at_least <= value <= LARGEST:
                return float(value)
        values = ", ".join(f"{value!r:.40}" for value in (place.get(key) for place in places) if value is not None)
        raise ConfigError(
            f"run `{name}` has no valid `{key}`",
            evidence=[
                f"it is {values}" if values else f"`run.json` contains: {', '.join(map(str, record)) or 'nothing'}"
            ],
            hint="`provision job mirrored --record` writes a job that records it",
        )

    def text(key: str, *places: Mapping[str, Any]) -> str | None:
        values = [place.get(key) for place in places]
        return next((value for value in values if isinstance(value, str) and value), None)

    begin, end = _trained(name, reported)
    loads = [int(percent) for at, percent in UTILIZATION.findall(gpu_csv or "") if begin <= at[: len(end)] <= end]
    return RecordedRun(
        name=name,
        program=str(record.get("program", "")),
        nodes=int(number("nodes", record, at_least=1)),
        tasks=int(number("tasks", record, at_least=1)),
        cpus=int(number("cpus", record)),
        gpus=int(number("gpus", record)),
        seconds=number("seconds", reported, record, at_least=SMALLEST_S),
        images_per_second=number("images_per_second", reported, at_least=1 / LARGEST)
        if "images_per_second" in reported
        else None,
        gpu_use=sum(loads) / len(loads) / 100 if loads else None,
        framework=next(
            (f"{title} {found}" for key, title in FRAMEWORKS if (found := text(key, reported, record))), None
        ),
        hosts=text("hosts", record),
        gpu=text("gpu", record),
        batch=int(number("batch", reported, at_least=1)) if "batch" in reported else None,
    )


def _trained(name: str, reported: Mapping[str, Any]) -> tuple[str, str]:
    """When the training began and ended, as nvidia-smi writes times; without a report of that, before and after all times.

    Raises:
        ConfigError: it is not two such times.
    """
    times = reported.get("trained")
    if times is None:
        return "", "9999/12/31 23:59:59"
    valid = isinstance(times, list) and len(times) == 2 and all(isinstance(one, str) for one in times)
    if not valid or not all(CLOCK.fullmatch(one) for one in times):
        raise ConfigError(
            f"run `{name}` has no valid `trained`",
            evidence=[f"it is {times!r:.80}"],
            hint='two times in `report.json`, as in `"trained": ["2026/11/22 09:00:00", "2026/11/22 09:05:00"]`',
        )
    return times[0], times[1]


def points(runs: Sequence[RecordedRun]) -> tuple[Point, ...]:
    """The best run of each number of workers, fewest first, against the first.

    The speed is in images per second if every run has them. Otherwise it is one over the seconds, which assumes that all
    runs did the same work.
    """
    by_images = all(run.images_per_second for run in runs)

    def speed(run: RecordedRun) -> float:
        return (run.images_per_second or 0) if by_images else 1 / run.seconds

    best = [
        max((run for run in runs if run.workers == count), key=speed) for count in sorted({run.workers for run in runs})
    ]
    first = best[0]
    speed_ups = [speed(run) / speed(first) for run in best]
    return tuple(
        Point(run=run, speed_up=speed_up, efficiency=speed_up * first.workers / run.workers)
        for run, speed_up in zip(best, speed_ups, strict=True)
    )


def table(runs: Sequence[RecordedRun]) -> tuple[tuple[str, ...], ...]:
    """The rows below `COLUMNS`: every run, by workers and CPUs, with the speed-up of the best on each number of workers."""
    best = {point.run.name: point for point in points(runs)}
    rows = []
    for run in sorted(runs, key=lambda run: (run.workers, run.cpus, run.name)):
        point = best.get(run.name)
        rows.append(
            (
                run.name,
                str(run.nodes),
                str(run.tasks),
                str(run.cpus),
                str(run.nodes * run.gpus),
                f"{run.seconds:.0f}",
                "" if run.images_per_second is None else f"{run.images_per_second:.0f}",
                "" if run.gpu_use is None else f"{run.gpu_use:.0%}",
                f"{point.speed_up:.2f}" if point else "",
                f"{point.efficiency:.0%}" if point else "",
            )
        )
    return tuple(rows)


def notes(runs: Sequence[RecordedRun]) -> tuple[str, ...]:
    """Conclusions from the table, with what to do."""
    lines = []
    best = points(runs)
    programs = sorted({run.program for run in runs})
    if len(programs) > 1:
        lines.append(
            f"these are runs of {len(programs)} programs, so their speed-ups mean nothing: {', '.join(programs)}"
        )
    for what, values in (
        ("frameworks", {run.framework for run in runs if run.framework}),
        ("models of GPUs", {run.gpu for run in runs if run.gpu}),
        ("batches of a rank", {str(run.batch) for run in runs if run.batch}),
    ):
        if len(values) > 1:
            lines.append(f"these runs have different {what}: {', '.join(sorted(values))}")
    slow = next((point for point in best if point.efficiency < GOOD), None)
    if slow:
        use = f", and their GPUs are {slow.run.gpu_use:.0%} busy" if slow.run.gpu_use is not None else ""
        lines.append(
            f"{slow.run.workers} workers do {slow.speed_up:.2f} times the work of the first{use}: check the input "
            "(decode less, cache, prefetch) before the network"
        )
    for point in best:
        cpus, workers = point.run.cpus, point.run.workers
        if cpus > 0 and any(run.workers == workers and run.cpus > cpus for run in runs):
            where = f"{workers} worker{'s' * (workers > 1)}"
            lines.append(f"more than {cpus} CPUs for each task do not help on {where}: request {cpus}")
    return tuple(lines)


def drawing(runs: Sequence[RecordedRun]) -> str:
    """Speed-up over workers as SVG, with the ideal as a dashed line. All texts in it are numbers of ours."""
    best = points(runs)
    first, most = best[0].run.workers, best[-1].run.workers
    top = max(most / first, max(point.speed_up for point in best))
    left, right, bottom, ceiling = 60, 460, 300, 20

    def place(workers: float, speed_up: float) -> tuple[float, float]:
        return left + (right - left) * workers / most, bottom - (bottom - ceiling) * speed_up / top

    def line(places: Sequence[tuple[float, float]], look: str) -> str:
        return f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in places)}" fill="none" {look}/>'

    def text(words: str, x: float, y: float, anchor: str = "middle") -> str:
        return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{words}</text>'

    dots = [(point, *place(point.run.workers, point.speed_up)) for point in best]
    steps = sorted({1.0, *(point.run.workers / first for point in best)})
    return "\n".join(
        (
            '<svg xmlns="http://www.w3.org/2000/svg" width="480" height="340" font-family="sans-serif" font-size="12">',
            f'<path d="M{left},{ceiling} V{bottom} H{right}" fill="none" stroke="black"/>',
            line((place(first, 1), place(most, most / first)), 'stroke="gray" stroke-dasharray="6 4"'),
            line([(x, y) for _, x, y in dots], 'stroke="steelblue" stroke-width="2"'),
            *(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4"><title>{p.speed_up:.2f}</title></circle>' for p, x, y in dots),
            *(text(str(point.run.workers), x, bottom + 20) for point, x, _ in dots),
            *(text(f"{step:g}", left - 10, place(0, step)[1], "end") for step in steps),
            text("workers (dashed: ideal)", (left + right) // 2, bottom + 36),
            text("speed-up", left, ceiling - 6),
            "</svg>\n",
        )
    )
