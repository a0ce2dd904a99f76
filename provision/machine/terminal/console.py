"""Messages for people, on stderr: lines, errors, and the progress of a build. stdout is for data.

On a terminal a build is a live table. Otherwise it is plain lines: one for each change.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO

from provision.errors import ProvisionError
from provision.machine.programs.secrets_here import secrets_here
from provision.profile.patterns import show_controls
from provision.wording import count, duration

if TYPE_CHECKING:
    from provision.model.event import Event, Listener  # it needs all of a plan, which most verbs do not


def is_terminal(stream: TextIO) -> bool:
    """Whether a table can be drawn: it is a terminal that can move its cursor."""
    return stream.isatty() and os.environ.get("TERM", "") != "dumb"


def error_lines(error: ProvisionError) -> list[str]:
    """An error as people read it: what happened, evidence, log, and after a blank line the hint."""
    return error.to_lines()


def for_people(text: str) -> str:
    """The text as a terminal may get it: lines and tabs stay, and any other control character is shown as an escape sequence.

    Logs, names of files and answers of programs may hold what would clear the screen, set the clipboard or hide a part. All
    text for people passes here, and our own colours are added behind it.
    """
    return show_controls(text, keep="\n\t")


def say(text: str) -> None:
    """Print a line to stderr, without the secrets of this run."""
    _say(for_people(secrets_here().hide(text)))


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def write_out(text: str) -> None:
    """Print a text to stdout."""
    text = for_people(text)
    print(text, end="" if text.endswith("\n") else "\n", flush=True)


def width_of_output() -> int | None:
    """How wide stdout is, in characters; None if it is not a terminal, so that nothing has to fit."""
    if not sys.stdout.isatty():
        return None
    from provision.machine.programs.shell import columns

    return columns()


def can_ask() -> bool:
    """Whether a person can answer questions: stdin is a terminal."""
    return is_terminal(sys.stdin)


def ask(question: str) -> str | None:
    """Print a question to stderr and read the line that answers it from stdin; None at the end of stdin (Ctrl-D)."""
    print(for_people(question), end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    return line.strip() if line else None


def show_error(error: ProvisionError) -> None:
    """Print an error; only the word `error:` is coloured, and only on a terminal without NO_COLOR."""
    first, *rest = error_lines(error)
    colour = is_terminal(sys.stderr) and not os.environ.get("NO_COLOR")
    first = for_people(secrets_here().hide(first))
    _say(first.replace("error:", "\033[1;31merror:\033[0m", 1) if colour else first)
    for line in rest:
        say(line)


@contextlib.contextmanager
def listener() -> Iterator[Listener]:
    """A listener that shows the progress of a build: a live table on a terminal, plain lines elsewhere."""
    if is_terminal(sys.stderr):
        from provision.machine.terminal.live_table import live_table

        with live_table(sys.stderr) as table:
            yield table.listen
        return
    plain = Plain()
    yield plain.listen
    plain.end()


@contextlib.contextmanager
def listeners(names: Sequence[str]) -> Iterator[Callable[[str], Listener]]:
    """A function that gives the listener of each of several builds: a row in one live table, plain lines elsewhere."""
    if is_terminal(sys.stderr):
        from provision.machine.terminal.jobs_table import JobsTable
        from provision.machine.terminal.live_table import drawn_live

        with drawn_live(sys.stderr, lambda say, marks: JobsTable(names=names, say=say, marks=marks)) as table:
            yield table.listener
        return
    plain = {name: Plain(say=lambda text, name=name: say(f"{name}: {text}")) for name in names}  # type: ignore[misc]
    yield lambda name: plain[name].listen


@contextlib.contextmanager
def shown_as_step(listen: Listener, name: str, title: str) -> Iterator[None]:
    """Show what runs within the context as the one step of a plan."""
    from provision.model.event import Event

    listen(Event(kind="plan", steps=((name, title, "create"),)))
    with shown_step(listen, name, title):
        yield


@contextlib.contextmanager
def shown_step(listen: Listener, name: str, title: str) -> Iterator[None]:
    """Show what runs within the context as a step of the plan that was shown."""
    from provision.model.event import Event

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
