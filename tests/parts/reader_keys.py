"""The keys that the readers of profiles and stacks ask for: recorded while a real reader reads a complete file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from typing import Any, Literal, get_args, get_origin

import pytest

from provision.profile.reader import BAD, REQUIRED, Choices, Mark, Named, Reader, Via, parts_of
from provision.profile.site import read_site
from provision.profile.stack import read_stack

WORDS = {str: "text", int: "whole number", float: "number", bool: "true or false"}
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


def _key(path: str, name: str, annotation: Any, default: Any) -> Key | None:
    """The row of a key; None if it is a table of keys."""
    kind, marks, optional = parts_of(annotation)
    if Via in marks:
        kind, more, _ = parts_of(marks[Via].kind)
        marks = {**marks, **more}
    if Named in marks or is_dataclass(kind) or get_origin(kind) in (dict, Mapping):
        return None
    item = kind
    if Mark.ENVIRON in marks:
        words = "table of variables"
    elif get_origin(kind) is tuple:
        item = parts_of(get_args(kind)[0])[0]
        words = "list of texts"
    else:
        words = WORDS.get(kind, "text")
    choices = get_args(item) if get_origin(item) is Literal else ()
    absent = "" if optional else choices[0] if Choices in marks else None
    shown = absent if default in (REQUIRED, BAD) or default is None else _toml(default)
    table = _generic(path)
    return Key(
        table=table,
        name="<size>" if table.endswith("overlay_templates") else name,
        type=words,
        default="{}" if Mark.ENVIRON in marks else shown,
        choices=tuple(choices),
    )


def _generic(path: str) -> str:
    """A table's path with the names that authors choose in angle brackets."""
    words = path.split(".") if path else []
    return ".".join(NAMED.get(before, word) for before, word in zip(["", *words], words, strict=False))


def _toml(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else str(value)


def keys_of(reader: str, data: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch) -> tuple[Key, ...]:
    """The keys that `site` or `stack` asks for while it reads this document, each once.

    Raises:
        ConfigError: the document has a fault.
    """
    keys: list[Key] = []
    original = Reader.get

    def get(self: Reader, key: str, annotation: Any, default: Any = REQUIRED) -> Any:
        row = _key(self._path, key, annotation, default)
        keys.extend([row] if row else [])
        return original(self, key, annotation, default)

    monkeypatch.setattr(Reader, "get", get)
    if reader == "site":
        read_site(data, "the examples of the page", {"PROVISION_ROOT": "/shared/provision"})
    else:
        read_stack(data, "the examples of the page")
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
