"""How the progress of builds is shown: a live table on a terminal, otherwise plain lines, one for each change."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from provision.machine.terminal.console import is_terminal, say
from provision.model.event import Event, Listener
from provision.wording import count, duration


@contextlib.contextmanager
def listener() -> Iterator[Listener]:
    """A listener that shows the progress of a build: a live table on a terminal, plain lines elsewhere."""
    if is_terminal(sys.stderr):
        from provision.machine.terminal.live_table import BuildTable, drawn

        with drawn(BuildTable(), sys.stderr) as table:
            yield table.listen
        return
    plain = Plain()
    yield plain.listen
    plain.end()


@contextlib.contextmanager
def listeners() -> Iterator[Callable[[str], Listener]]:
    """A function that gives the listener of each of several builds: a row in one live table, plain lines elsewhere."""
    if is_terminal(sys.stderr):
        from provision.machine.terminal.live_table import JobsTable, drawn

        with drawn(JobsTable(), sys.stderr) as table:
            yield table.listener
        return
    yield lambda name: Plain(say=lambda text: say(f"{name}: {text}")).listen


@contextlib.contextmanager
def shown_as_step(listen: Listener, name: str, title: str) -> Iterator[None]:
    """Show what runs within the context as the one step of a plan."""
    listen(Event(kind="plan", steps=((name, title, "create"),)))
    with shown_step(listen, name, title):
        yield


@contextlib.contextmanager
def shown_step(listen: Listener, name: str, title: str) -> Iterator[None]:
    """Show what runs within the context as a step of the plan that was shown."""
    listen(Event(kind="started", step=name, text=title))
    began = time.monotonic()
    try:
        yield
    except BaseException:
        listen(Event(kind="failed", step=name, seconds=time.monotonic() - began))
        raise
    listen(Event(kind="finished", step=name, seconds=time.monotonic() - began))


@dataclass(slots=True)
class Plain:
    """Plain lines: each step when it begins and when it ends."""

    say: Callable[[str], None] = say
    steps: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Each step's number and title."""
    done: int = 0
    seconds: float = 0.0
    """Of the steps that are done. A job is followed later than it runs, so our clock does not count."""

    def listen(self, event: Event) -> None:
        """Print a line for an event; progress is in the log."""
        number, title = self.steps.get(event.step, (0, event.text))
        start = f"[{number}/{len(self.steps)}] {event.step}:"
        match event.kind:
            case "plan":
                self.steps = {name: (index, title) for index, (name, title, _) in enumerate(event.steps, 1)}
            case "started":
                self.say(f"{start} {title}")
            case "finished":
                self.done += 1
                self.seconds += event.seconds
                self.say(f"{start} done in {event.seconds:.1f} s{f', {event.text}' if event.text else ''}")
            case "failed":
                self.say(f"{start} FAILED after {event.seconds:.1f} s")
            case "say":
                self.say(event.text)
            case "progress" | "error":
                pass

    def end(self) -> None:
        """Print the total of a build that finished."""
        if self.done > 1:
            self.say(f"{count(self.done, 'step')} done in {duration(self.seconds)}")
