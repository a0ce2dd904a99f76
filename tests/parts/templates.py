"""Templates are compiled once in a process of tests: the tool compiles them at each rendering, which takes most of its time."""

from __future__ import annotations

from types import CodeType
from typing import Any

from jinja2 import Environment

COMPILED: dict[object, CodeType] = {}


def compile_once() -> None:
    """Keep what jinja compiles, by the text of the template and the filters that it may use; a fault is found each time."""
    compile_template: Any = Environment.compile

    def compile_or_find(self: Environment, source: str, *words: Any, **options: Any) -> CodeType:
        key = (source, words, *options.items(), type(self).__qualname__, frozenset(self.filters.items()))
        if key not in COMPILED:
            COMPILED[key] = compile_template(self, source, *words, **options)
        return COMPILED[key]

    Environment.compile = compile_or_find  # type: ignore[assignment, method-assign]


def pytest_configure() -> None:
    """In each process of tests."""
    compile_once()
