"""The sources of a profile's values (`[sources.<name>]`): a text, its date, and the key paths of the values."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, cast

from provision.profile.patterns import NAME, Form
from provision.profile.reader import Faults, Mark, Named, Reader

Date = Annotated[str, Form(r"[0-9]{4}(-[0-9]{2}){0,2}", "of a date: `2031`, `2031-12` or `2031-12-24`")]
PATH = Form(r"[A-Za-z0-9_.*+-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A page or file, its date (or the date on which it was read), and the values that come from it.

    `values` are key paths as in faults; `*` matches any one key, and the path of a table covers all values below it.
    `sure` is false if no text confirms the values: they are general knowledge or guesses that a probe must confirm.
    """

    name: str
    text: str
    date: Date
    sure: bool = True
    values: Annotated[tuple[Annotated[str, PATH], ...], Mark.NOT_EMPTY]

    def nearness(self, path: str) -> int:
        """How many keys of this path the source names; 0 if it does not cover the path."""
        return max((pattern.count(".") + 1 for pattern in self.values if is_below(pattern, path)), default=0)

    def __str__(self) -> str:
        return f"{self.text}, {self.date}" + ("" if self.sure else ", unverified")


def nearest_source(path: str, sources: Sequence[Source]) -> Source | None:
    """The source of the value at this key path; of several, the most exact."""
    return max(
        (source for source in sources if source.nearness(path)), key=lambda one: one.nearness(path), default=None
    )


def is_below(pattern: str, path: str) -> bool:
    """Whether a key path is that of a pattern, in which `*` is any one key, or of a value in such a table."""
    parts, keys = pattern.split("."), path.split(".")
    return len(parts) <= len(keys) and all(part in ("*", key) for part, key in zip(parts, keys, strict=False))


SOURCES = Annotated[tuple[Source, ...], Named("a source", NAME)]


def read_sources(profile: Mapping[str, Any]) -> tuple[Source, ...]:
    """The valid sources of a parsed profile."""
    return cast("tuple[Source, ...]", Reader(profile, Faults("", profile)).get("sources", SOURCES, ()))


def walk(data: Mapping[str, object], path: str = "") -> Iterator[tuple[str, object]]:
    """Yield every value of a parsed document with its key path; tables are walked, and a list is one value."""
    for key, value in data.items():
        inner = f"{path}.{key}" if path else key
        if isinstance(value, dict):
            yield from walk(value, inner)
        else:
            yield inner, value
