"""Parsed files of TOML: their limits, and a profile that extends another one, such as a vendor's (`extends = "cray-ex"`). Pure.

TOML itself has no limits: without ours, a file could make any function fail that repeats, prints or divides its values.

If two profiles have a value, that of the extending one counts. Tables are joined key by key; any other value, lists included, is
replaced. Values in `[every_arch]` are those of all archs, unless an arch has its own.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any

from provision.profile.provenance import walk
from provision.profile.reader import Faults

Document = Mapping[str, Any]
MOST_TABLES = 16
LARGEST = 10**15
LONGEST = 4096


def refuse_extremes(data: Mapping[str, Any], origin: str) -> None:
    """Refuse a document with a value that no profile and no stack needs.

    Raises:
        ConfigError: tables are too deep in each other, a number is too large or not a number, or a text is too long; the
            error lists each with its key path.
    """
    faults = Faults(origin)
    left: list[tuple[str, object, int]] = [("", data, 0)]
    while left:
        path, value, depth = left.pop()
        if isinstance(value, dict | list):
            if depth == MOST_TABLES:
                faults.add(path, f"has more than {MOST_TABLES} tables or lists in each other")
                continue
            entries = value.items() if isinstance(value, dict) else enumerate(value)
            for key, inner in entries:
                if isinstance(key, str) and len(key) > LONGEST:
                    faults.add(path, f"has a key of {len(key)} characters; at most {LONGEST} are allowed")
                    continue
                at = f"[{key}]" if isinstance(key, int) else f".{key}" if path else key
                left.append((f"{path}{at}", inner, depth + 1))
        elif isinstance(value, int) and abs(value) > LARGEST:
            faults.add(path, f"is a number of {value.bit_length()} bits; at most {LARGEST} is allowed")
        elif isinstance(value, float) and not (math.isfinite(value) and abs(value) <= LARGEST):
            faults.add(path, f"must be a number of at most {LARGEST}, but is {value}")
        elif isinstance(value, str) and len(value) > LONGEST:
            faults.add(path, f"has {len(value)} characters; at most {LONGEST} are allowed")
    faults.check(hint=f"edit `{origin}`")


def join(layers: Sequence[Document]) -> dict[str, Any]:
    """One document of several, the extending one first, each followed by what it extends."""
    joined: dict[str, Any] = {}
    for layer in reversed(layers):
        joined = _over(layer, joined)
    if isinstance(joined.get("sources"), dict):  # of two sources of a value, the first one is named
        tables = [table for layer in layers if isinstance(table := layer.get("sources"), dict)]
        joined["sources"] = {name: joined["sources"][name] for table in tables for name in table}
    every, archs = joined.pop("every_arch", None), joined.get("archs")
    if isinstance(every, dict) and isinstance(archs, dict):
        joined["archs"] = {
            name: _over(arch, copy.deepcopy(every)) if isinstance(arch, dict) else arch for name, arch in archs.items()
        }
    elif every is not None:
        joined["every_arch"] = every  # the reader refuses it
    return joined


def layer_of(path: str, layers: Sequence[Document]) -> int:
    """The index of the layer that has the value at this key path of the joined document."""
    shared = ["every_arch", *path.split(".")[2:]] if path.startswith("archs.") else None
    for wanted in (path, ".".join(shared) if shared else path):
        for index, layer in enumerate(layers):
            if any(key == wanted for key, _ in walk(layer)):
                return index
    return 0


def _over(document: Document, below: Document) -> dict[str, Any]:
    """This document with the values of the one below it where it has none."""
    joined = dict(below)
    for key, value in document.items():
        lower = joined.get(key)
        joined[key] = _over(value, lower) if isinstance(value, dict) and isinstance(lower, dict) else value
    return joined
