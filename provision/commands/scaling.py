"""`provision scaling`: a table of speed-up and efficiency from runs of one program on 1, 2, 4, … GPUs."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from provision.commands.shared.outcome import Outcome
from provision.errors import ConfigError

if TYPE_CHECKING:
    from provision.jobs.scaling import Run

SWEEP = (
    "for gpus in 1 2 4; do provision job mirrored --record --gpus $gpus --site SITE > $gpus.sh; sbatch $gpus.sh; done"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name the runs."""
    parser.add_argument("runs", nargs="+", metavar="RUN", help="output folder of a job with `--record`")
    parser.add_argument("--plot", metavar="FILE", help="draw the speed-up and the ideal line (SVG)")


def run(args: argparse.Namespace) -> Outcome:
    """Read the runs and print the table."""
    from dataclasses import asdict

    from provision.jobs import scaling
    from provision.machine.disk import write

    folders = [Path(one) for one in args.runs]
    if len({one.resolve() for one in folders}) < len(folders):
        raise ConfigError("one run is given twice", hint="give each run once: `provision scaling RUN RUN`")
    runs = [_read(one) for one in folders]
    rows = (scaling.COLUMNS, *scaling.table(runs))
    widths = [max(len(row[at]) for row in rows) for at in range(len(scaling.COLUMNS))]
    shown = [at for at in range(len(widths)) if any(row[at] for row in rows[1:])]
    lines = []
    for row in rows:
        cells = [row[at].rjust(widths[at]) if at else row[at].ljust(widths[at]) for at in shown]
        lines.append("  ".join(cells).rstrip())
    notes = scaling.notes(runs)
    if args.plot:
        write(Path(args.plot), scaling.drawing(runs))
    points = [
        {**asdict(one.run), "speed_up": one.speed_up, "efficiency": one.efficiency} for one in scaling.points(runs)
    ]
    text = "\n".join([*lines, *(["", *(f"note: {one}" for one in notes)] if notes else [])])
    return Outcome(text=text, result={"runs": [asdict(one) for one in runs], "points": points, "notes": list(notes)})


def _read(folder: Path) -> Run:
    from provision.jobs.scaling import read_run

    record = _json(folder / "run.json")
    if record is None:
        raise ConfigError(
            f"`{folder}` is not the output folder of a job with `--record`, or that job failed",
            evidence=[f"looked for: {folder / 'run.json'}"],
            hint=SWEEP,
        )
    csv = folder / "gpu.csv"
    text = csv.read_text(encoding="utf-8", errors="replace") if csv.is_file() else None
    return read_run(folder.name or str(folder), record, _json(folder / "report.json"), text)


def _json(path: Path) -> dict[str, Any] | None:
    if not path.is_file():
        return None
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"`{path}` cannot be read", evidence=[str(error)], hint="run that job again") from error
    if not isinstance(value, dict):
        raise ConfigError(f"`{path}` is not a JSON object", hint='an example: `{"images_per_second": 1234.5}`')
    return value
