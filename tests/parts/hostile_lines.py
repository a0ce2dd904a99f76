"""Lines on which a regular expression takes long: what it begins with, then each of its repeated parts again and again."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import sre_parse  # the parser of `re`, whose name is `re._parser` from Python 3.11 on

CANDIDATES = "a1/ .:-_=A'(\"\\,"


def hostile_lines(pattern: str, length: int) -> Iterator[str]:
    """Lines of this length that look like a match to the pattern, for a long while."""
    tree = sre_parse.parse(pattern)
    seeds: dict[tuple[str, str], None] = {("", _example(tree)): None, ("", _example(tree) + " "): None}
    for before, letters in _repeated(tree, ""):
        for letter in letters:
            seeds[before, letter] = None
            seeds["", letter] = None
            if before:
                seeds["", before + letter] = None
    for before, again in seeds:
        if again:
            yield (before + again * (1 + length // len(again)))[:length]


def _example(tree: Any) -> str:
    """A short text that the pattern matches, as far as it is simple."""
    return "".join(_of_node(name, value) for name, value in tree)


def _of_node(name: Any, value: Any) -> str:
    name = str(name)
    if name == "LITERAL":
        return chr(value)
    if name in ("IN", "NOT_LITERAL", "ANY"):
        return next(iter(_letters(name, value)), "")
    if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        return _example(value[2]) * max(value[0], 1 if value[1] else 0)
    if name == "SUBPATTERN":
        return _example(value[3])
    if name == "ATOMIC_GROUP":
        return _example(value)
    if name == "BRANCH":
        return _example(value[1][0])
    return ""


def _letters(name: str, value: Any) -> str:
    """Some letters that a class contains, of different kinds."""
    if name == "ANY":
        return CANDIDATES[:2]
    if name == "LITERAL":
        return chr(value)
    if name == "NOT_LITERAL":
        return "".join(letter for letter in CANDIDATES if ord(letter) != value)[:2]
    return "".join(letter for letter in CANDIDATES if _contains(value, letter))[:3] or "".join(
        chr(item[1] if str(item[0]) == "LITERAL" else item[1][0])
        for item in value
        if str(item[0]) in ("LITERAL", "RANGE")
    )


def _contains(items: Any, letter: str) -> bool:
    negated = bool(items) and str(items[0][0]) == "NEGATE"
    for name, value in items:
        inside = (
            (str(name) == "LITERAL" and value == ord(letter))
            or (str(name) == "RANGE" and value[0] <= ord(letter) <= value[1])
            or (str(name) == "CATEGORY" and re.match(CATEGORIES[str(value)], letter) is not None)
        )
        if inside:
            return not negated
    return negated


CATEGORIES = {
    "CATEGORY_DIGIT": r"\d",
    "CATEGORY_NOT_DIGIT": r"\D",
    "CATEGORY_SPACE": r"\s",
    "CATEGORY_NOT_SPACE": r"\S",
    "CATEGORY_WORD": r"\w",
    "CATEGORY_NOT_WORD": r"\W",
}


def _repeated(tree: Any, before: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What can be repeated often, with an example of what comes before it."""
    for name, value in tree:
        kind = str(name)
        if kind in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT") and value[1] > 9:
            (inner, argument), *more = value[2]
            if not more and str(inner) in ("IN", "ANY", "LITERAL", "NOT_LITERAL"):
                yield before, tuple(_letters(str(inner), argument))
            else:
                yield before, (_example(value[2]),)
                yield from _repeated(value[2], before)
        elif kind in ("MAX_REPEAT", "MIN_REPEAT"):
            yield from _repeated(value[2], before)
        elif kind == "SUBPATTERN":
            yield from _repeated(value[3], before)
        elif kind == "BRANCH":
            for branch in value[1]:
                yield from _repeated(branch, before)
        elif kind in ("ASSERT", "ASSERT_NOT"):
            yield from _repeated(value[1], before)
        before += _of_node(name, value)
