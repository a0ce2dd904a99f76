"""`provision startup`: how long many ranks take to start, by each way that brings them the environment: a model, as ranges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from provision.commands.shared.environments import named_environment
from provision.commands.shared.outcome import Args, Outcome
from provision.errors import ConfigError
from provision.knowledge.start_up_numbers import NUMBERS, Number
from provision.launch.start_up import Estimate, advice, drawing, estimates
from provision.machine.files.disk import read_json, write
from provision.model.layout import IMAGES
from provision.model.verdict import Figures
from provision.wording import columns, duration, nearest

MEASURED = "measured by the proof of {}"
LARGEST = 1e15


def run(args: Args) -> Outcome:
    """Print the table, the recommendation and the numbers behind both."""
    numbers = {**NUMBERS, **(_of_environment(args) if args.environment else {}), **_given(args.numbers)}
    best, worst = ({name: getattr(number, case) for name, number in numbers.items()} for case in ("best", "worst"))
    rows = estimates(args.nodes, args.ranks_per_node, best, worst)
    lines = advice(rows, args.ranks_per_node, best, worst)
    if args.plot:
        write(Path(args.plot), drawing(rows))
    launcher, mpi_init = (
        f"{number.best:g} – {number.worst:g} s" for number in (numbers["launcher_s"], numbers["mpi_init_s"])
    )
    text = [
        *_table(rows),
        "",
        f"with every way: launcher {launcher}, MPI_Init {mpi_init}",
        *lines,
        "",
        "from these numbers, best to worst (`--given NAME=VALUE` or `NAME=BEST:WORST` replaces one)",
        *columns([("", name, _text(number), number.source) for name, number in numbers.items()]),
        *([f"written: {args.plot}"] if args.plot else []),
    ]
    return Outcome(
        text="\n".join(text),
        result={
            "estimates": [asdict(row) for row in rows],
            "advice": list(lines),
            "numbers": {name: asdict(number) for name, number in numbers.items()},
        },
    )


def _of_environment(args: Args) -> dict[str, Number]:
    """What the proof of an environment measured; nothing of what it did not measure."""
    _, store, env = named_environment(args)
    record = store.record(env)
    images = read_json(Path(store.layout.images(env)) / IMAGES) or {}
    figures: Figures | None = record.verdict.verdict.figures if record else None
    found: dict[str, float | None] = {"image_size": sum(image.get("size", 0) for image in images.get("images", ()))}
    if figures:
        found["import_s"] = figures.start_seconds
        if figures.reads_files:
            found["lookups"] = figures.reads_files.lookups
        if figures.reads_image:
            found |= {"image_lookups": figures.reads_image.lookups, "image_bytes": figures.reads_image.bytes}
    measured = {name: Number(value, value, MEASURED.format(env)) for name, value in found.items() if value}
    if "import_s" in measured:  # ranks of a whole node at once take longer
        measured["import_s"] = replace(measured["import_s"], worst=2 * measured["import_s"].worst)
    return measured


def _given(texts: Sequence[str]) -> dict[str, Number]:
    """The numbers of `--given`.

    Raises:
        ConfigError: a name is not one of `NUMBERS`, or a value is not a positive number.
    """
    given = {}
    for text in texts:
        name, _, value = text.partition("=")
        if name not in NUMBERS:
            raise ConfigError(
                f"`--given {text}`: there is no number `{name}`{nearest(name, tuple(NUMBERS))}",
                hint="`provision startup` lists the names",
            )
        try:
            best, worst = (float(part) for part in (value.split(":") if ":" in value else (value, value)))
        except ValueError:
            best = worst = -1.0
        least, most = (0.0, 1.0) if name == "kept" else (1 / LARGEST, LARGEST)
        if not all(least <= number <= most for number in (best, worst)):
            raise ConfigError(
                f"`--given {text}`: `{value}` is not a positive number, nor two (`BEST:WORST`)"
                + (", at most 1" if name == "kept" else ""),
                hint=f"`--given {name}={_text(NUMBERS[name])}`",
            )
        given[name] = Number(best, worst, "given")
    return given


def _table(rows: Sequence[Estimate]) -> list[str]:
    """A line for each number of nodes, with the best and the worst seconds of each way."""
    ways = tuple(dict.fromkeys(row.way for row in rows))
    cells = {(row.nodes, row.way): f"{duration(row.best_s)} – {duration(row.worst_s)}" for row in rows}
    sizes = dict.fromkeys((row.nodes, row.ranks) for row in rows)
    body = [(str(nodes), f"{ranks:,}", *(cells[nodes, way] for way in ways)) for nodes, ranks in sizes]
    return columns([("nodes", "ranks", *ways), *body])


def _text(number: Number) -> str:
    best, worst = (f"{value:.10g}" if value < 1e6 else f"{value:.3g}" for value in (number.best, number.worst))
    return best if best == worst else f"{best}:{worst}"
