"""No pattern of `explain` takes long for a line that nearly matches it, however often its parts are repeated there."""

from __future__ import annotations

import importlib
import pkgutil
import re
import time
from collections.abc import Callable, Iterable, Iterator

import pytest

from parts.paths import REPOSITORY
from provision import explain
from provision.explain.known import TOKEN, compile_pattern
from provision.explain.lines import WINDOW
from provision.machine.programs.failed_program import known_failures

# A part that is repeated at most 400 times, and begins anywhere: its time grows with the length of the line, and no faster.
REFERENCE = re.compile(r"[^\s:]{1,400}: file not recognized")
# So many times as long as the reference. One that begins anywhere took 3 to 4.5 times as long, as the CPU is; one without an end
# ten times, and two that compete a hundred times.
MOST = 7.0
SOURCES = "\n".join(path.read_text() for path in (REPOSITORY / "provision" / "explain").glob("*.py"))


# Letters of different kinds, of which a class of a pattern contains some.
LETTERS = "a1/ .:-_=A'(\"\\,"
# What is behind the parenthesis of a group.
GROUP = re.compile(r"\(\?(?:P<\w+>|[a-z]*:|[=!>]|<[=!])|\(\?P=\w+(?=\))")


def hostile_lines(pattern: str, length: int) -> Iterator[str]:
    """Lines of this length that look like a match to the pattern for a long while: what it begins with, then a repeated part."""
    tokens, before, outer = TOKEN.findall(GROUP.sub("(", pattern.removeprefix("(?i)"))), "", [""]
    seeds: dict[tuple[str, str], None] = {}
    for token, following in zip(tokens, [*tokens[1:], ""], strict=True):
        if token == "(":
            outer.append(before)
        elif token in (")", "|"):
            before = outer[-1] if token == "|" else before
            del outer[len(outer) - (token == ")") :]
        elif token not in ("^", "$", "?", "*", "+", r"\b", r"\B") and not re.match(r"\{|\\\d", token):
            letters = [letter for letter in LETTERS if re.fullmatch(token, letter)][:3] or [token[-1]]
            if following in ("*", "+") or re.fullmatch(r"\{\d*,\d{2,}\}", following):
                for letter in letters:
                    seeds |= dict.fromkeys(((before, letter), ("", letter), ("", before + letter)))
            before += letters[0]
    for start, again in (*seeds, ("", before), ("", f"{before} ")):
        if again:
            yield (start + again * (1 + length // len(again)))[:length]


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
def test_no_pattern_of_an_entry_is_slow_on_hostile_lines(every: int) -> None:
    """All of them take a minute and a half: `make test-all`. All repetitions get an end when a pattern is compiled."""
    rows = [(entry.id, compile_pattern(pattern)) for entry in known_failures().entries for pattern in entry.match]
    assert len(rows) > 1000
    assert slow((name, pattern, pattern.search) for name, pattern in rows[::every]) == []


@pytest.mark.real
@pytest.mark.long
def test_no_other_pattern_that_reads_logs_is_slow_on_hostile_lines() -> None:
    found: list[tuple[str, re.Pattern[str], Callable[[str], object]]] = []
    for module in pkgutil.iter_modules(explain.__path__, f"{explain.__name__}."):
        for name, value in vars(importlib.import_module(module.name)).items():
            # The patterns of `known` read our own patterns.
            if isinstance(value, re.Pattern) and isinstance(value.pattern, str) and not module.name.endswith(".known"):
                anywhere = f"{name}.search(" in SOURCES or f"{name}.finditer(" in SOURCES
                search = value.search if anywhere else value.match
                # `severity` gives these the beginning of a line only.
                short = name in ("MEASURED", "WARNS", "INFORMS")
                found.append((name, value, (lambda line, of=search: of(line[:160])) if short else search))
    assert len(found) > 30
    assert slow(found) == []


def test_a_slow_pattern_would_be_found() -> None:
    for text in (r"[^\s:]+: file not recognized", r"\bJob\S{0,400} ?\S{0,400} exceeded memory"):
        assert slow([("slow", re.compile(text), re.compile(text).search)]), text
