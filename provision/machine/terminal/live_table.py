"""A build drawn on a terminal: a line for each step, what the running one does, and how long it will take.

The only importer of rich. What is drawn is decided by `screen`, which takes time and size as values.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TextIO, TypeVar

from provision.machine.programs.secrets_here import secrets_here
from provision.machine.programs.streams import can_encode
from provision.machine.terminal.console import for_people
from provision.model.estimate import UNTIMED
from provision.model.event import Event
from provision.model.progress import Doing, read_progress
from provision.profile.patterns import show_controls
from provision.wording import about, count, duration

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

Line = tuple[tuple[str, str], ...]
"""A line as parts, each a text with its style."""
MARKS = {"keep": "=", "reuse": "=", "create": "·", "run": "›", "done": "✓", "failed": "✗"}
ASCII_MARKS = {"keep": "=", "reuse": "=", "create": ".", "run": ">", "done": "+", "failed": "x"}
STYLES = {"run": "cyan", "done": "green", "failed": "red"}
INSTEAD_OF_SECONDS = {"keep": "kept", "reuse": "cached"}
INDENT = 21
WIDE = 70


@dataclass(slots=True)
class StepRow:
    """A step: its state (its action, until it runs), when it began, and the seconds that it took."""

    title: str
    state: str
    began: float = 0.0
    seconds: float | None = None


@dataclass(slots=True)
class Table:
    """The state of a build, from its events. `clock` gives monotonic seconds, `say` prints a line above the table."""

    clock: Callable[[], float] = time.monotonic
    say: Callable[[str], None] = print
    marks: dict[str, str] = field(default_factory=lambda: MARKS)
    rows: dict[str, StepRow] = field(default_factory=dict)
    expected: dict[str, float] = field(default_factory=dict)
    doing: Doing = field(default_factory=Doing)
    ended: float | None = None

    def listen(self, event: Event) -> None:
        """Take one event into the table."""
        if event.kind == "say":
            self.say(event.text)
            return
        if event.kind == "error":  # the verb shows it at the end
            return
        now = self.clock()
        match event.kind:
            case "plan":
                self.rows = {name: StepRow(title=title, state=action) for name, title, action in event.steps}
                self.expected = dict(event.expected)
            case "started":
                row = self.rows.setdefault(event.step, StepRow(title=event.text, state="run"))
                row.state, row.began, self.doing = "run", now, Doing()
            case "progress":
                self.doing = read_progress(event.text, self.doing)
            case "finished" | "failed":
                row = self.rows.setdefault(event.step, StepRow(title="", state="run", began=now))
                row.state = "done" if event.kind == "finished" else "failed"
                row.seconds = event.seconds
                if event.kind == "finished" and event.text:
                    row.title += f": {event.text}"

    def end(self) -> None:
        """Stop the clock: what is drawn from now on is the result."""
        self.ended = self.clock()

    def screen(self, width: int, height: int) -> list[Line]:
        """The lines of the whole table, each at most `width - 1` long; at most `height - 1` while it runs."""
        if not self.rows:
            return []
        now = self.clock() if self.ended is None else self.ended
        running = next((name for name, row in self.rows.items() if row.state == "run"), None)
        steps = [(name, self._row(name, row, now)) for name, row in self.rows.items()]
        if self.ended is None:
            steps = _around(steps, running, room=max(1, height - 3))
        lines = []
        for name, line in steps:
            lines.append(line)
            if name == running and self.ended is None:
                lines.append(((f"{' ' * (INDENT if width >= WIDE else 2)}{self._detail(name)}", "dim"),))
        lines.append(((self._sum(now, running), "bold"),))
        return [cut(line, width - 1) for line in lines]

    def _row(self, name: str, row: StepRow, now: float) -> Line:
        seconds = now - row.began if row.state == "run" else row.seconds
        taken = INSTEAD_OF_SECONDS.get(row.state, "") if seconds is None else f"{seconds:.0f} s"
        style = STYLES.get(row.state, "dim")
        return ((f"{self.marks[row.state]} {name:<9} ", style), (f"{taken:>7}  ", ""), (row.title, ""))

    def _detail(self, name: str) -> str:
        """What the running step does, and how long it took before."""
        before = self.expected.get(name)
        words = [str(self.doing), f"{duration(before)} last time" if before is not None and before >= 1 else ""]
        return "; ".join(filter(None, words))

    def _sum(self, now: float, running: str | None) -> str:
        """The last line: which step of how many, the time until now, and the time that is left."""
        # A job is followed later than it runs, so the steps are counted, and not our time.
        taken = duration(sum(now - row.began if row.state == "run" else row.seconds or 0 for row in self.rows.values()))
        failed = next((name for name, row in self.rows.items() if row.state == "failed"), None)
        step = f"step {list(self.rows).index(running) + 1} of {len(self.rows)}" if running else ""
        if failed:
            return f"stopped in step {failed} after {taken}"
        if self.ended is None:
            left = self._left(now)
            return ", ".join(filter(None, (step, f"{taken} so far", f"{about(left)} left" if left else "")))
        done = sum(row.state == "done" for row in self.rows.values())
        return f"{step} after {taken}" if step else f"{count(done, 'step')} done in {taken}"

    def _left(self, now: float) -> float | None:
        """The seconds that are left, if every step that is to be done was timed before."""
        left = 0.0
        for name, row in self.rows.items():
            if row.state in ("create", "run") and name not in UNTIMED:
                if name not in self.expected:
                    return None
                left += max(0.0, self.expected[name] - (now - row.began if row.state == "run" else 0.0))
        return left


def _around(steps: list[tuple[str, Line]], running: str | None, room: int) -> list[tuple[str, Line]]:
    """As many steps as there is room for, with the running one and the one after it among them."""
    names = [name for name, _ in steps]
    at = names.index(running) if running else len(names) - 1
    first = max(0, min(at + 2 - room, len(steps) - room))
    return steps[min(first, at) :][:room]


def cut(line: Line, width: int) -> Line:
    """A line that is not longer than the terminal is wide."""
    parts, room = [], width
    for text, style in line:
        parts.append((text[:room], style))
        room -= len(parts[-1][0])
    return tuple(parts)


def live_table(stream: TextIO) -> contextlib.AbstractContextManager[Table]:
    """Draw the table of one build on this terminal for as long as the context lasts."""
    return drawn_live(stream, lambda say, marks: Table(say=say, marks=marks))


class Screen(Protocol):
    """What is drawn: lines for a terminal of this size, until it has ended."""

    def screen(self, width: int, height: int) -> list[Line]:
        """The lines."""
        ...

    def end(self) -> None:
        """Stop the clock."""
        ...


Drawn = TypeVar("Drawn", bound=Screen)


@contextlib.contextmanager
def drawn_live(stream: TextIO, make: Callable[[Callable[[str], None], dict[str, str]], Drawn]) -> Iterator[Drawn]:
    """Draw what `make` makes on this terminal for as long as the context lasts; its last state stays on the screen.

    `make` gets the function that prints a line above the table, and the marks that the terminal can write.
    """
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(file=stream, no_color=bool(os.environ.get("NO_COLOR")), highlight=False)
    marks = MARKS if can_encode(stream, "".join(MARKS.values())) else ASCII_MARKS
    table = make(lambda text: console.print(Text(for_people(secrets_here().hide(text)))), marks)
    with Live(
        console=console, get_renderable=lambda: _drawn(table, console), refresh_per_second=8, redirect_stdout=False
    ):
        try:
            yield table
        finally:
            table.end()


def _drawn(table: Screen, console: Console) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    lines = table.screen(*console.size)
    shown = (tuple((show_controls(text), style) for text, style in line) for line in lines)
    return Group(*(Text.assemble(*line, no_wrap=True, end="\n") for line in shown))
