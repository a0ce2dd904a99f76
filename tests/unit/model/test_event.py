"""Events: what is written to a file is read back, and a damaged line is passed over."""

from __future__ import annotations

import pytest

from golden_files import facts_of, local_site, request_for
from provision.model.event import Event, emit_event, parse_event, plan_event
from provision.model.facts import Existing
from provision.planning.planner import make_plan

PLAN = plan_event(make_plan(request_for(local_site()), facts_of(local_site()), Existing()), {"install": 15.2})


@pytest.mark.parametrize(
    "event",
    [
        PLAN,
        Event(kind="started", step="install", text="44 packages"),
        Event(kind="progress", step="compile", text="[3/27] Building CXX object 'é✓'\t\x1b[0m"),
        Event(kind="finished", step="install", seconds=15.25),
        Event(kind="failed", step="proof", text="line\nbreak", seconds=0.5),
        Event(kind="say", text="waiting"),
        Event(kind="error", error={"message": "it failed", "evidence": ["a", "b"], "hint": None}),
    ],
    ids=lambda event: event.kind,
)
def test_an_event_is_parsed_as_it_was_emitted(event: Event) -> None:
    line = emit_event(event)
    assert line.count("\n") == 1
    assert line.isascii()
    assert parse_event(line) == event


def test_the_event_of_a_plan_has_steps_and_expected_seconds() -> None:
    assert PLAN.environment.startswith("haswell/tensorflow/2.15.1-")
    name, title, action = PLAN.steps[0]
    assert (name, action) == ("create", "create") and "Python 3.11" in title
    assert [name for name, _, _ in PLAN.steps][-1] == "publish"
    assert PLAN.expected == (("install", 15.2),)


@pytest.mark.parametrize(
    "line",
    ["", "{", '{"kind": "say"', "[]", "null", "3", '{"kind": "new"}', '{"kind": "say", "text": 3}', '{"text": "x"}'],
)
def test_a_damaged_or_incomplete_line_is_not_an_event(line: str) -> None:
    assert parse_event(line) is None


def test_an_event_of_a_newer_version_is_read_without_what_is_new() -> None:
    assert parse_event('{"kind": "say", "text": "x", "new": 1}') == Event(kind="say", text="x")


@pytest.mark.parametrize("steps", ["3", "[3]", '[["create", "make the environment"]]'])
def test_an_event_with_malformed_steps_is_not_an_event(steps: str) -> None:
    assert parse_event(f'{{"kind": "plan", "steps": {steps}}}') is None
