"""Events: what a build reports while it runs, to the terminal and to a command that follows the job."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from provision.errors import ProvisionError
from provision.model.plan import Plan
from provision.model.stored import Stored

EventKind = Literal["plan", "started", "progress", "finished", "failed", "say", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event(Stored):
    """Something that happened. Only the event of the plan has `environment`, `steps` and `expected`.

    The `text` of a finished step describes its result, if there is one: the size of the environment.

    `failed` is a failed step; `error` is the last event of a failed run, and contains the whole error as `--json` prints it.
    """

    kind: EventKind
    step: str = ""
    text: str = ""
    seconds: float = 0.0
    environment: str = ""
    steps: tuple[tuple[str, str, str], ...] = ()
    """Each step's name, title and action."""
    expected: tuple[tuple[str, float], ...] = ()
    """The seconds that each step took in an earlier build."""
    error: Mapping[str, Any] = field(default_factory=dict)


Listener = Callable[[Event], None]


def plan_event(plan: Plan, expected: Mapping[str, float]) -> Event:
    """The event that shows a plan. `expected` are the seconds that steps took in an earlier build."""
    steps = tuple((step.name, step.title, step.action) for step in plan.steps)
    return Event(kind="plan", environment=str(plan.environment), steps=steps, expected=tuple(expected.items()))


def error_event(error: ProvisionError) -> Event:
    """The event of a run that failed."""
    return Event(kind="error", text=error.message, error=error.to_dict())


def emit_event(event: Event) -> str:
    """The event as one line of JSON."""
    return json.dumps({key: value for key, value in event.to_dict().items() if value}) + "\n"


def parse_event(line: str) -> Event | None:
    """The inverse of `emit_event`; None for a line that is damaged or incomplete."""
    try:
        return Event.from_dict(json.loads(line))
    except (ValueError, RecursionError):
        return None
