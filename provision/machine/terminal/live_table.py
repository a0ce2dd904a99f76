"""A table on a terminal that shows a build, or several: a line for each step or job, and how long everything takes.

The only importer of rich. What is drawn is decided by `screen`, which takes time and size as values.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TextIO, TypeVar

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from provision.machine.programs.secrets_here import secrets_here
from provision.machine.terminal.console import ASCII, can_encode, for_people
from provision.model.event import Event, Listener
from provision.model.progress import Doing, read_progress
from provision.model.record import UNTIMED
from provision.profile.patterns import show_controls
from provision.wording import about, count, duration

MARKS = {"keep": "=", "reuse": "=", "create": "·", "run": "›", "done": "✓", "failed": "✗"}
STYLES = {"run": "cyan", "done": "green", "failed": "red"}
INSTEAD_OF_SECONDS = {"keep": "kept", "reuse": "cached"}
INDENT = 21
WIDE = 70


@dataclass(slots=True)
class TableRow:
    """A step of a build, or one of several jobs: its state, what it is, what it does now, and how long it took."""

    words: str = ""
    state: str = "create"
    """A key of MARKS."""
    doing: Doing = field(default_factory=Doing)
    began: float | None = None
    seconds: float | None = None

    def taken(self, now: float) -> float | None:
        """The seconds from its beginning to its end, or until now; None if it did not begin."""
        if self.seconds is not None or self.began is None:
            return self.seconds
        return now - self.began

    def begin(self, now: float) -> None:
        """From now on it runs."""
        self.state, self.began, self.seconds, self.doing = "run", now, None, Doing()


@dataclass(slots=True)
class Table:
    """Rows with marks. `clock` gives monotonic seconds, `say` prints a line above the table."""

    clock: Callable[[], float] = time.monotonic
    say: Callable[[str], None] = print
    marks: dict[str, str] = field(default_factory=lambda: MARKS)
    rows: dict[str, TableRow] = field(default_factory=dict)
    ended: float | None = None

    def now(self) -> float:
        """The time that is drawn: that of the end, when there is one."""
        return self.clock() if self.ended is None else self.ended

    def line(self, title: str, row: TableRow, words: str) -> Text:
        """The line of a row."""
        seconds = row.taken(self.now())
        taken = INSTEAD_OF_SECONDS.get(row.state, "") if seconds is None else f"{seconds:.0f} s"
        start = (f"{self.marks[row.state]} {title} ", STYLES.get(row.state, "dim"))
        return Text.assemble(start, f"{taken:>7}  ", show_controls(words))

    def screen(self, width: int, height: int) -> list[Text]:
        """The lines, each at most `width - 1` long; at most `height - 1` while it runs, all of them at the end."""
        lines = self.lines(width, height)
        for line in lines:
            line.truncate(width - 1)
        return lines

    def lines(self, width: int, height: int) -> list[Text]:
        """The lines that are drawn on a terminal of this size."""
        raise NotImplementedError


@dataclass(slots=True)
class BuildTable(Table):
    """The steps of a build, from its events."""

    expected: dict[str, float] = field(default_factory=dict)

    def listen(self, event: Event) -> None:
        """Take one event into the table."""
        row = self.rows.get(event.step) or TableRow()
        match event.kind:
            case "say":
                self.say(event.text)
            case "plan":
                self.rows = {name: TableRow(title, action) for name, title, action in event.steps}
                self.expected = dict(event.expected)
            case "started":
                self.rows[event.step] = row = self.rows.get(event.step) or TableRow(event.text)
                row.begin(self.clock())
            case "progress":
                row.doing = read_progress(event.text, row.doing)
            case "finished" | "failed":
                self.rows[event.step] = row
                row.state = "done" if event.kind == "finished" else "failed"
                row.seconds = event.seconds
                if event.kind == "finished" and event.text:
                    row.words += f": {event.text}"
            case "error":  # the verb shows it at the end
                pass

    def lines(self, width: int, height: int) -> list[Text]:
        """A line for each step, with what the running one does; on a low terminal that one and those around it."""
        names = list(self.rows)
        running = next((name for name in names if self.rows[name].state == "run"), None)
        if self.ended is None and names:
            at, room = names.index(running) if running else len(names) - 1, max(1, height - 3)
            first = max(0, min(at + 2 - room, len(names) - room))
            names = names[min(first, at) :][:room]
        lines = []
        for name in names:
            row = self.rows[name]
            lines.append(self.line(f"{name:<9}", row, row.words))
            if name == running and self.ended is None:
                before = self.expected.get(name)
                last_time = f"{duration(before)} last time" if before is not None and before >= 1 else ""
                detail = "; ".join(filter(None, (str(row.doing), last_time)))
                indent = " " * (INDENT if width >= WIDE else 2)
                lines.append(Text(f"{indent}{show_controls(detail)}", "dim"))
        return [*lines, Text(self._sum(running), "bold")] if lines else []

    def _sum(self, running: str | None) -> str:
        """Which step of how many, the time until now, and the time that is left."""
        # A job is followed later than it runs, so the steps are counted, and not our time.
        taken = duration(sum(row.taken(self.now()) or 0 for row in self.rows.values()))
        failed = next((name for name, row in self.rows.items() if row.state == "failed"), None)
        step = f"step {list(self.rows).index(running) + 1} of {len(self.rows)}" if running else ""
        if failed:
            return f"stopped in step {failed} after {taken}"
        if self.ended is None:
            left = self._left()
            return ", ".join(filter(None, (step, f"{taken} so far", f"{about(left)} left" if left else "")))
        done = sum(row.state == "done" for row in self.rows.values())
        return f"{step} after {taken}" if step else f"{count(done, 'step')} done in {taken}"

    def _left(self) -> float | None:
        """The seconds that are left, if every step that is to be done was timed before."""
        rows = {name: row for name, row in self.rows.items() if row.state in ("create", "run") and name not in UNTIMED}
        if not rows.keys() <= self.expected.keys():
            return None
        return sum(max(0.0, self.expected[name] - (row.taken(self.now()) or 0)) for name, row in rows.items())


@dataclass(slots=True)
class JobsTable(Table):
    """Several jobs: the state of each, its step, and what the step does."""

    began: float = field(init=False)

    def __post_init__(self) -> None:
        self.began = self.clock()

    def listener(self, name: str) -> Listener:
        """What takes the events of one job into the table."""
        row = self.rows[name] = TableRow("submitted")
        steps: list[str] = []

        def end(state: str, words: str) -> None:
            row.state, row.words, row.doing = state, words, Doing()
            row.seconds = row.taken(self.clock())

        def listen(event: Event) -> None:
            match event.kind:
                case "plan":
                    steps[:] = [step for step, _, _ in event.steps]
                    row.begin(self.clock())
                case "started":
                    if row.began is None:
                        row.begin(self.clock())
                    at = f" ({steps.index(event.step) + 1} of {len(steps)})" if event.step in steps else ""
                    row.state, row.words, row.doing = "run", f"{event.step}{at}", Doing()
                case "progress":
                    row.doing = read_progress(event.text, row.doing)
                case "finished" if event.step == (steps[-1] if steps else "publish"):
                    end("done", "published" if event.step == "publish" else "done")
                case "failed":
                    end("failed", f"stopped in step {event.step}")
                case "error":
                    end("failed", event.text)
                case "say" if row.state == "create":
                    row.words = event.text
                case "say":
                    self.say(f"{name}: {event.text}")
                case _:
                    pass

        return listen

    def lines(self, width: int, height: int) -> list[Text]:
        """A line for each job; on a low terminal the busy ones first."""
        rows = list(self.rows.items())
        if self.ended is None and len(rows) > height - 2:
            order = ("run", "failed", "create", "done")
            rows = sorted(rows, key=lambda item: order.index(item[1].state))[: max(1, height - 2)]
        longest = max(map(len, self.rows), default=0)
        states = [row.state for row in self.rows.values()]
        parts = [f"{states.count('done')} of {count(len(states), 'job')} done"]
        parts += [f"{states.count('failed')} failed"] if "failed" in states else []
        parts.append(duration(self.now() - self.began))
        lines = [
            self.line(f"{name:<{longest}}", row, ": ".join(filter(None, (row.words, str(row.doing)))))
            for name, row in rows
        ]
        return [*lines, Text(", ".join(parts), "bold")]


AnyTable = TypeVar("AnyTable", bound=Table)


@contextlib.contextmanager
def drawn(table: AnyTable, stream: TextIO) -> Iterator[AnyTable]:
    """Draw the table on this terminal for as long as the context lasts; its last state stays on the screen."""
    console = Console(file=stream, no_color=bool(os.environ.get("NO_COLOR")), highlight=False)
    table.say = lambda text: console.print(Text(for_people(secrets_here().hide(text))))
    if not can_encode(stream, "".join(MARKS.values())):
        table.marks = {state: ASCII.get(mark, mark) for state, mark in MARKS.items()}

    def lines() -> Group:
        return Group(*table.screen(*console.size))

    with Live(console=console, get_renderable=lines, refresh_per_second=8, redirect_stdout=False):
        try:
            yield table
        finally:
            table.ended = table.clock()
