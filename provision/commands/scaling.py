"""`provision scaling`: a table of speed-up and efficiency from runs of one program on 1, 2, 4, … GPUs."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path

from provision.commands.shared.outcome import Args, Outcome
from provision.errors import ConfigError
from provision.jobs import scaling
from provision.machine.files.disk import write
from provision.machine.submission.run_folder import read_runs


def run(args: Args) -> Outcome:
    """Read the runs and print the table."""
    if args.plot and Path(args.plot).suffix.lower() not in ("", ".svg"):
        raise ConfigError(
            f"`--plot` draws SVG, but `{args.plot}` is named like another format",
            hint=f"`--plot {shlex.quote(str(Path(args.plot).with_suffix('.svg')))}`",
        )
    runs, without = read_runs(args.runs)
    rows = (scaling.COLUMNS, *scaling.table(runs))
    widths = [max(len(row[at]) for row in rows) for at in range(len(scaling.COLUMNS))]
    shown = [at for at in range(len(widths)) if any(row[at] for row in rows[1:])]
    lines = []
    for row in rows:
        cells = [row[at].rjust(widths[at]) if at else row[at].ljust(widths[at]) for at in shown]
        lines.append("  ".join(cells).rstrip())
    notes = [*scaling.notes(runs)]
    notes += [f"left out, because there is no run.json (yet): {', '.join(without)}"] if without else []
    if args.plot:
        write(Path(args.plot), scaling.drawing(runs))
    points = [
        {**asdict(point.run), "speed_up": point.speed_up, "efficiency": point.efficiency}
        for point in scaling.points(runs)
    ]
    lines += ["", *(f"note: {note}" for note in notes)] if notes else []
    text = "\n".join([*lines, *([f"written: {args.plot}"] if args.plot else [])])
    return Outcome(
        text=text, result={"runs": [asdict(measured) for measured in runs], "points": points, "notes": list(notes)}
    )
