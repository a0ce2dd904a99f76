"""A profile that extends another one, a vendor's or a site's: `extends = "cray-ex"`. Pure.

If both have a value, that of the extending profile counts. Tables are joined key by key; any other value, lists included, is
replaced. Values in `[every_arch]` are those of all archs, unless an arch has its own.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from provision.profile.provenance import walk

Document = Mapping[str, Any]


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
