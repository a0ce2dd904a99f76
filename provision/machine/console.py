"""Talking to people, on stderr. The only importer of rich, and only where there is a terminal to draw on.

stdout is data. Piped, the same story comes as plain lines: one for each change, nothing that moves.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO

from provision.errors import ProvisionError
from provision.model.event import Event, Listener

if TYPE_CHECKING:
    from rich.console import RenderableType

NINJA = re.compile(r"\[(\d+)/(\d+)\] (?:Building|Linking) \w+ .*?([\w.+-]+?)(?:\.o)?$")
MARKS = {"keep": "=", "reuse": "=", "create": "·", "run": "›", "done": "✓", "failed": "✗"}


def is_terminal(stream: TextIO) -> bool:
    """Whether to draw: a real terminal that can."""
    return stream.isatty() and os.environ.get("TERM", "") != "dumb"


def progress_text(line: str) -> str:
    """What a line of a program's output says about how far it is: which file is being compiled, or the line itself."""
    compiled = NINJA.search(line)
    return f"{compiled[1]}/{compiled[2]} {compiled[3]}" if compiled else " ".join(line.split())


def error_lines(error: ProvisionError) -> list[str]:
    """An error as people read it: what, evidence, log, and after a blank line the hint."""
    lines = [f"error: {error.message}", *(f"  {line}" for line in error.evidence)]
    if error.log:
        lines.append(f"  log: {error.log}")
    if error.hint:
        lines += ["", f"hint: {error.hint}"]
    return lines


def say(text: str) -> None:
    """A line to stderr."""
    print(text, file=sys.stderr, flush=True)


def show_error(error: ProvisionError) -> None:
    """Tell an error; only the word `error:` is coloured, and only on a terminal that wants it."""
    first, *rest = error_lines(error)
    colour = is_terminal(sys.stderr) and not os.environ.get("NO_COLOR")
    say(first.replace("error:", "\033[1;31merror:\033[0m", 1) if colour else first)
    for line in rest:
        say(line)


@contextlib.contextmanager
def listener() -> Iterator[Listener]:
    """A listener that tells a build's story: a live table on a terminal, plain lines elsewhere."""
    if not is_terminal(sys.stderr):
        yield Plain().listen
        return
    table = Table()
    with table.live():
        yield table.listen


class Plain:
    """Plain lines: each step as it begins and ends."""

    def __init__(self) -> None:
        self._steps: dict[str, tuple[int, str]] = {}

    def listen(self, event: Event) -> None:
        """Tell one event; progress is left to the log."""
        total = len(self._steps)
        number, title = self._steps.get(event.step, (0, event.text))
        match event.kind:
            case "plan":
                self._steps = {name: (index, title) for index, (name, title, _) in enumerate(event.steps, 1)}
            case "started":
                say(f"[{number}/{total}] {event.step}: {title}")
            case "finished":
                say(f"[{number}/{total}] {event.step}: done in {event.seconds:.1f} s")
            case "failed":
                say(f"[{number}/{total}] {event.step}: FAILED after {event.seconds:.1f} s")
            case "say":
                say(event.text)
            case "progress":
                pass


class Table:
    """A table of steps that lives: state, elapsed seconds, and what the running one is doing."""

    def __init__(self) -> None:
        self._rows: dict[str, list[str]] = {}
        self._seconds: dict[str, float] = {}
        self._began: dict[str, float] = {}
        self._doing = ""
        self._live: object = None

    @contextlib.contextmanager
    def live(self) -> Iterator[None]:
        """Draw for as long as the context lasts; the last state stays on the screen."""
        from rich.console import Console
        from rich.live import Live

        console = Console(stderr=True, no_color=bool(os.environ.get("NO_COLOR")), highlight=False)
        with Live(console=console, get_renderable=self._render, refresh_per_second=8, redirect_stdout=False) as live:
            self._live = live
            yield
            self._doing = ""

    def listen(self, event: Event) -> None:
        """Take one event into the table."""
        match event.kind:
            case "plan":
                self._rows = {name: [action, title] for name, title, action in event.steps}
            case "started":
                self._rows.setdefault(event.step, ["run", event.text])[0] = "run"
                self._began[event.step], self._doing = time.monotonic(), ""
            case "progress":
                self._doing = progress_text(event.text)
            case "finished" | "failed":
                state = "done" if event.kind == "finished" else "failed"
                self._rows.setdefault(event.step, [state, ""])[0] = state
                self._seconds[event.step], self._doing = event.seconds, ""
            case "say":
                self._live.console.print(event.text, markup=False)  # type: ignore[attr-defined]

    def _render(self) -> RenderableType:
        from rich.table import Table as RichTable
        from rich.text import Text

        table = RichTable.grid(padding=(0, 2))
        for justify in ("left", "left", "left", "right", "left"):
            table.add_column(justify=justify, no_wrap=True)
        width = max((len(title) for _, title in self._rows.values()), default=0)
        room = max(0, shutil.get_terminal_size().columns - width - 30)
        colours = {"run": "cyan", "done": "green", "failed": "red", "keep": "dim", "reuse": "dim", "create": "dim"}
        for name, (state, title) in self._rows.items():
            seconds = self._seconds.get(name)
            if state == "run":
                seconds = time.monotonic() - self._began.get(name, time.monotonic())
            shown = f"{seconds:.0f} s" if seconds is not None else state if state in ("keep", "reuse") else ""
            style = colours[state]
            doing = self._doing[:room] if state == "run" else ""
            table.add_row(Text(MARKS[state], style), Text(name, style), Text(title), shown, Text(doing, "dim"))
        return table
