"""Where a profile's values came from, as `[sources.<name>]` says: a text, its date, and the key paths of the values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from provision.profile.reader import Reader

DATE = re.compile(r"\d{4}(-\d{2}){0,2}")
PATH = re.compile(r"[A-Za-z0-9_.*+-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A page or file, the date of what it says (or on which it was read), and the values it stands behind.

    `values` are key paths as faults name them; `*` is any one key, and a table's path means all below it. `sure` is
    false where no text says it: general knowledge, or a guess that a probe of the site has to confirm.
    """

    name: str
    text: str
    date: str
    sure: bool
    values: tuple[str, ...]

    def covers(self, path: str) -> bool:
        """Whether the value at this key path came from here."""
        return self.nearness(path) > 0

    def nearness(self, path: str) -> int:
        """How many keys of this path the source names; 0: it does not cover it."""
        return max((pattern.count(".") + 1 for pattern in self.values if _below(pattern, path)), default=0)

    def __str__(self) -> str:
        return f"{self.text}, {self.date}" + ("" if self.sure else ", unverified")


def _below(pattern: str, path: str) -> bool:
    wanted, keys = pattern.split("."), path.split(".")
    return len(wanted) <= len(keys) and all(one in ("*", key) for one, key in zip(wanted, keys, strict=False))


def read_sources(table: Reader, data: Mapping[str, object]) -> tuple[Source, ...]:
    """The sources of `[sources]`; `data` is the whole file, in which every path they name must be."""
    leaves = [path for path, _ in walk(data)]
    found = []
    for name in table.names():
        one = table.table(name)
        source = Source(
            name=name,
            text=one.text("text"),
            date=one.text("date", pattern=DATE),
            sure=one.flag("sure", True),
            values=one.texts("values", required=True, pattern=PATH),
        )
        for index, pattern in enumerate(source.values):
            if not any(_below(pattern, path) for path in leaves):
                one.fault(f"values[{index}]", f"{pattern!r} is not in this file")
        one.done()
        found.append(source)
    return tuple(found)


def walk(data: Mapping[str, object], path: str = "") -> Iterator[tuple[str, object]]:
    """Every value of a parsed document that is no table, with its key path; a list is one value."""
    for key, value in data.items():
        inner = f"{path}.{key}" if path else key
        if isinstance(value, dict):
            yield from walk(value, inner)
        else:
            yield inner, value
