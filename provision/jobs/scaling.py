"""Runs of one program on more and more GPUs: how much faster each is, in a table and a drawing. Pure.

A run is what a job with `--record` left in its output folder: its shape and seconds, how busy its GPUs were, and what its
training script reported. Speed-up is over the run on the fewest workers, by the best run of each number of workers.
Source of the table's form: NYU HPC's TensorFlow page, after Princeton's multi_gpu_training.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from provision.errors import ConfigError

# Below this part of what as many workers could do, the input is the first suspect; the page's 75 % at 3 GPUs is not good.
GOOD = 0.8
# nvidia-smi's line: the time, the GPU, its use, its memory's use.
UTILIZATION = re.compile(r"[^,]+, *\d+, *(\d+) *%", re.MULTILINE)
COLUMNS = ("run", "nodes", "tasks", "CPUs", "GPUs", "seconds", "images/s", "GPU use", "speed-up", "efficiency")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run. `cpus` are of one task, `gpus` of one node; `seconds` of training where the script says so, else of all.

    `images_per_second` and `gpu_use` (a share, 0 to 1) are None where nobody wrote them down.
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

    @property
    def workers(self) -> int:
        """What the work is divided among: GPUs, or tasks where there are none."""
        return self.nodes * self.gpus or self.tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The best run on a number of workers; `efficiency` is the speed-up as a share of what they could do."""

    run: Run
    speed_up: float
    efficiency: float


def read_run(name: str, record: Mapping[str, Any], report: Mapping[str, Any] | None, gpu_csv: str | None) -> Run:
    """The run that the job's record, the script's report and nvidia-smi's lines tell of.

    Raises:
        ConfigError: a value is missing or no number.
    """
    said = report or {}

    def number(key: str, *places: Mapping[str, Any]) -> float:
        for place in places:
            value = place.get(key)
            if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
                return float(value)
        raise ConfigError(
            f"run `{name}` does not say its `{key}`",
            evidence=[f"`run.json` of a job with `--record`; it holds {', '.join(map(str, record)) or 'nothing'}"],
            hint="`provision job mirrored --record` writes a job that does",
        )

    busy = [int(found) for found in UTILIZATION.findall(gpu_csv or "")]
    return Run(
        name=name,
        program=str(record.get("program", "")),
        nodes=int(number("nodes", record)),
        tasks=int(number("tasks", record)),
        cpus=int(number("cpus", record)),
        gpus=int(number("gpus", record)),
        seconds=max(number("seconds", said, record), 0.001),
        images_per_second=number("images_per_second", said) if "images_per_second" in said else None,
        gpu_use=sum(busy) / len(busy) / 100 if busy else None,
    )


def points(runs: Sequence[Run]) -> tuple[Point, ...]:
    """The best run of each number of workers, fewest first, against the first.

    By images per second where every run says them, else by seconds: all runs are then taken to do the same work.
    """
    by_images = all(one.images_per_second for one in runs)

    def speed(run: Run) -> float:
        return (run.images_per_second or 0) if by_images else 1 / run.seconds

    best = [
        max((one for one in runs if one.workers == count), key=speed) for count in sorted({r.workers for r in runs})
    ]
    first = best[0]
    found = []
    for run in best:
        speed_up = speed(run) / speed(first)
        found.append(Point(run=run, speed_up=speed_up, efficiency=speed_up * first.workers / run.workers))
    return tuple(found)


def table(runs: Sequence[Run]) -> tuple[tuple[str, ...], ...]:
    """The rows below `COLUMNS`: every run, by workers and CPUs; speed-up stands at the best of each number of workers."""
    best = {one.run.name: one for one in points(runs)}
    rows = []
    for run in sorted(runs, key=lambda one: (one.workers, one.cpus, one.name)):
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


def notes(runs: Sequence[Run]) -> tuple[str, ...]:
    """What the table tells, in words, with what to do."""
    found = []
    programs = sorted({one.program for one in runs})
    if len(programs) > 1:
        found.append(
            f"these are runs of {len(programs)} programs, which says nothing of scaling: {', '.join(programs)}"
        )
    for one in points(runs):
        if one.efficiency < GOOD:
            use = f", its GPUs {one.run.gpu_use:.0%} busy" if one.run.gpu_use is not None else ""
            found.append(
                f"{one.run.workers} workers do {one.speed_up:.2f} times the work of the first{use}: suspect the input "
                "(decode less, cache, prefetch) before the network"
            )
            break
    for one in points(runs):
        more = [run for run in runs if run.workers == one.run.workers and run.cpus > one.run.cpus]
        if more and one.run.cpus > 0:
            where = f"{one.run.workers} worker{'s' * (one.run.workers > 1)}"
            found.append(f"more than {one.run.cpus} CPUs a task bring nothing on {where}: do not ask for them")
    return tuple(found)


def drawing(runs: Sequence[Run]) -> str:
    """Speed-up over workers as SVG, with the ideal as a dashed line."""
    found = points(runs)
    first, most = found[0].run.workers, found[-1].run.workers
    top = max(most / first, max(one.speed_up for one in found))
    left, right, bottom, ceiling = 60, 460, 300, 20

    def place(workers: float, speed_up: float) -> str:
        x = left + (right - left) * workers / most
        return f"{x:.1f},{bottom - (bottom - ceiling) * speed_up / top:.1f}"

    marks = [(one.run.workers, one.speed_up, place(one.run.workers, one.speed_up).split(",")) for one in found]
    dots = [f'<circle cx="{x}" cy="{y}" r="4"><title>{speed_up:.2f}</title></circle>' for _, speed_up, (x, y) in marks]
    ticks = [f'<text x="{x}" y="{bottom + 20}" text-anchor="middle">{workers}</text>' for workers, _, (x, _) in marks]
    steps = sorted({1.0, *(float(one.run.workers / first) for one in found)})
    levels = [
        f'<text x="{left - 10}" y="{place(0, one).split(",")[1]}" text-anchor="end">{one:g}</text>' for one in steps
    ]
    line = " ".join(f"{x},{y}" for _, _, (x, y) in marks)
    return "\n".join(
        (
            '<svg xmlns="http://www.w3.org/2000/svg" width="480" height="340" font-family="sans-serif" font-size="12">',
            f'<path d="M{left},{ceiling} V{bottom} H{right}" fill="none" stroke="black"/>',
            f'<polyline points="{place(first, 1)} {place(most, most / first)}" stroke="gray" stroke-dasharray="6 4"/>',
            f'<polyline points="{line}" fill="none" stroke="steelblue" stroke-width="2"/>',
            *('<g fill="steelblue">', *dots, "</g>", *ticks, *levels),
            f'<text x="{(left + right) // 2}" y="{bottom + 36}" text-anchor="middle">workers (dashed: ideal)</text>',
            f'<text x="{left}" y="{ceiling - 6}" text-anchor="middle">speed-up</text>',
            "</svg>\n",
        )
    )
