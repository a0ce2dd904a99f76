"""The keys that the readers of profiles and stacks ask for: recorded while a real reader reads a complete file."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from provision.profile import site, stack
from provision.profile.reader import Reader

TYPES = {
    "text": "text",
    "optional": "text",
    "optional_choice": "text",
    "texts": "list of texts",
    "integer": "whole number",
    "number": "number",
    "flag": "true or false",
    "environment": "table of variables",
}
# Tables whose keys the author of a file chooses.
NAMED = {
    "archs": "<arch>",
    "queues": "<queue>",
    "strategies": "<kind>",
    "sources": "<name>",
    "overlay_templates": "<size>",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key as its reader asks for it: the table, its type, its default as TOML (None: required), its choices."""

    table: str
    name: str
    type: str
    default: str | None
    choices: tuple[str, ...]


def _recording(keys: list[Key]) -> type[Reader]:
    """A class of reader that writes down every key it is asked for."""

    class Recording(Reader):
        def table(self, key: str, *, required: bool = False) -> Reader:
            inner = super().table(key, required=required)
            return Recording(inner._data, inner._faults, inner._path, inner._environ)

    def recorded(method: str) -> Callable[..., Any]:
        original = getattr(Reader, method)
        signature = inspect.signature(original)

        def call(self: Reader, *args: Any, **options: Any) -> Any:
            given = signature.bind(self, *args, **options).arguments
            table, name = _generic(self._path), str(given["key"])
            if method.startswith("optional"):
                default: str | None = ""
            elif method == "environment":
                default = "{}"
            elif method == "texts":
                default = None if given.get("required") else "[]"
            else:
                default = None if given.get("default") is None else _toml(given["default"])
            keys.append(
                Key(
                    table=table,
                    name="<size>" if table.endswith("overlay_templates") else name,
                    type=TYPES[method],
                    default=default,
                    choices=tuple(given.get("choices", ())),
                )
            )
            return original(self, *args, **options)

        return call

    for method in TYPES:
        setattr(Recording, method, recorded(method))
    return Recording


def _generic(path: str) -> str:
    """A table's path with the names that authors choose in angle brackets."""
    words = path.split(".") if path else []
    return ".".join(NAMED.get(before, word) for before, word in zip(["", *words], words, strict=False))


def _toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else str(value)


def keys_of(reader: str, data: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch) -> tuple[Key, ...]:
    """The keys that `site` or `stack` asks for while it reads this document, each once.

    Raises:
        ConfigError: the document has a fault.
    """
    keys: list[Key] = []
    module = {"site": site, "stack": stack}[reader]
    monkeypatch.setattr(module, "Reader", _recording(keys))
    if reader == "site":
        site.read_site(data, "the examples of the page", {"PROVISION_ROOT": "/shared/provision"})
    else:
        stack.read_stack(data, "the examples of the page")
    return tuple(dict.fromkeys(keys))


def rows_of(page: str) -> dict[tuple[str, str], tuple[str, ...]]:
    """The rows of a page's tables: (table, key) to the other cells. A heading names the table: "## `[modules]`"."""
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    table = None
    for line in page.splitlines():
        heading = re.match(r"#+ `\[(.+)\]`|#+ Top level", line)
        if heading:
            table = heading[1] or ""
        elif line.startswith("#"):
            table = None
        row = re.match(r"\| `([^`]+)` \|(.+)\|$", line)
        if row and table is not None:
            cells = tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", row[2]))
            if len(cells) == 4:  # type, default, example, meaning
                assert (table, row[1]) not in found, f"[{table}] {row[1]} stands twice"
                found[table, row[1]] = cells
    return found


def assemble(examples: Sequence[tuple[str, str]], parse: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    """One document of examples: (table with names in angle brackets, `key = value`)."""
    document: dict[str, Any] = {}
    for table, line in examples:
        here = document
        for word in table.split(".") if table else ():
            here = here.setdefault(EXAMPLE_NAMES.get(word, word), {})
        here.update(parse(line))
    return document


EXAMPLE_NAMES = {"<arch>": "gpu", "<queue>": "long", "<kind>": "cray-ml-plugin", "<name>": "page"}
