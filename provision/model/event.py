"""What a build says while it runs: events, listened to by the terminal here and by whoever follows a job elsewhere."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from provision.errors import ConfigError
from provision.model.plan import Plan

EventKind = Literal["plan", "started", "progress", "finished", "failed", "say"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened. `steps` (name, title, action) and `environment` come with the plan only."""

    kind: EventKind
    step: str = ""
    text: str = ""
    seconds: float = 0.0
    environment: str = ""
    steps: tuple[tuple[str, str, str], ...] = ()


Listener = Callable[[Event], None]


def plan_event(plan: Plan) -> Event:
    """The event that shows a plan."""
    steps = tuple((step.name, step.title, step.action) for step in plan.steps)
    return Event(kind="plan", environment=str(plan.environment), steps=steps)


def emit_event(event: Event) -> str:
    """The event as one line of JSON."""
    return json.dumps({key: value for key, value in dataclasses.asdict(event).items() if value}) + "\n"


def parse_event(line: str) -> Event | None:
    """The inverse of `emit_event`; None for a line that is damaged or not whole yet."""
    try:
        data = json.loads(line)
        return Event(**{**data, "steps": tuple(tuple(step) for step in data.get("steps", ()))})
    except (ValueError, TypeError, AttributeError):
        return None


def to_file(path: Path) -> Listener:
    """A listener that appends to a file, progress at most once a second: it may be on a parallel file system."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("w", encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"`{path}` cannot be written: {error.strerror}", hint="give `--events` another file"
        ) from error
    last = 0.0

    def listen(event: Event) -> None:
        nonlocal last
        if event.kind == "progress":
            if time.monotonic() - last < 1:
                return
            last = time.monotonic()
        # A build does not end because nobody can be told how it goes: the disk may be full, and the error says so itself.
        with contextlib.suppress(OSError):
            file.write(emit_event(event))
            file.flush()

    return listen


def to_all(*listeners: Listener) -> Listener:
    """A listener that passes everything on."""

    def listen(event: Event) -> None:
        for one in listeners:
            one(event)

    return listen
