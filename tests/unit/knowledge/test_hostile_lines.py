"""No pattern of `explain` takes long for a line that nearly matches it, however often its parts are repeated there."""

from __future__ import annotations

import importlib
import pkgutil
import re
import time
from collections.abc import Callable, Iterable

import pytest

from parts.hostile_lines import hostile_lines
from parts.paths import REPOSITORY
from provision.knowledge import failures
from provision.knowledge.failures.line_parts import WINDOW
from provision.knowledge.failures.report_forms import report_forms
from provision.machine.tables import known_failures

# A part that is repeated at most 400 times, and begins anywhere: its time grows with the length of the line, and no faster.
REFERENCE = re.compile(r"[^\s:]{1,400}: file not recognized")
# So many times as long as the reference. One without an end took ten times as long, and two that compete a hundred times.
MOST = 4.0
SOURCES = "\n".join(path.read_text() for path in (REPOSITORY / "provision" / "knowledge" / "failures").glob("*.py"))


def seconds(search: Callable[[str], object], line: str) -> float:
    began = time.process_time()
    search(line)
    return time.process_time() - began


def slow(patterns: Iterable[tuple[str, re.Pattern[str], Callable[[str], object]]]) -> list[str]:
    """The patterns, with their names, that take much longer than the reference for a hostile line; each was tried twice."""
    found = []
    for name, pattern, search in patterns:
        for line in hostile_lines(pattern.pattern, WINDOW):
            taken = seconds(search, line)
            if taken > 0.02 and min(taken, seconds(search, line)) > MOST * seconds(REFERENCE.search, "-" * WINDOW):
                found.append(f"{name}: {pattern.pattern!r} on {line[:60]!r}")
                break
    return found


@pytest.mark.parametrize("every", [25, pytest.param(1, marks=[pytest.mark.real, pytest.mark.long])])
def test_no_alternative_of_the_catalogue_is_slow_on_hostile_lines(every: int) -> None:
    """All of them take a minute and a half: `make test-all`. All repetitions get an end where the catalogue is read."""
    found = [
        (one.failure.id, re.compile(one.pattern, re.IGNORECASE if one.ignore_case else 0), one.search)
        for one in known_failures().alternatives[::every]
    ]
    assert len(found) * every > 1000
    assert slow(found) == []


@pytest.mark.parametrize("every", [10, pytest.param(1, marks=[pytest.mark.real, pytest.mark.long])])
def test_no_form_of_an_error_is_slow_on_hostile_lines(every: int) -> None:
    # A form is looked for at the beginning of a line.
    found = [(form.pattern[:40], pattern, pattern.match) for form, pattern in list(report_forms())[::every]]
    assert len(found) * every > 100
    assert slow(found) == []


@pytest.mark.real
@pytest.mark.long
def test_no_other_pattern_that_reads_logs_is_slow_on_hostile_lines() -> None:
    found: list[tuple[str, re.Pattern[str], Callable[[str], object]]] = []
    for module in pkgutil.iter_modules(failures.__path__, f"{failures.__name__}."):
        values = vars(importlib.import_module(module.name))
        for name, value in values.items():
            # The patterns of `words` read our own patterns.
            if isinstance(value, re.Pattern) and isinstance(value.pattern, str) and not module.name.endswith(".words"):
                anywhere = f"{name}.search(" in SOURCES or f"{name}.finditer(" in SOURCES
                search = value.search if anywhere else value.match
                # `level` gives this one the beginning of a line only.
                found.append(
                    (name, value, search if name != "MEASURED" else lambda line, of=value: of.match(line[:160]))
                )
    assert len(found) > 50
    found_slow = slow(found)
    assert found_slow == [], "\n".join(found_slow)


def test_a_slow_pattern_would_be_found() -> None:
    for text in (r"[^\s:]+: file not recognized", r"\bJob\S{0,400} ?\S{0,400} exceeded memory"):
        assert slow([("slow", re.compile(text), re.compile(text).search)]), text
