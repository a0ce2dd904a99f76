"""A generation: the modules that users of one arch can load at one time, and how a module system shows them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from provision.model import stored

SCHEMA = 1
DATE = re.compile(r"(20\d\d)-(\d\d)-(\d\d)")
DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deprecation:
    """From which day (`2027-03-01`) a module may be gone, and what users should do."""

    date: str
    text: str

    @property
    def warning(self) -> str:
        """What a user reads who loads the module."""
        return f"is deprecated and may be removed after {self.date}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """What users of one arch can load. Modules are named `<name>/<version>`."""

    modules: Mapping[str, str] = field(default_factory=dict)
    """Module to environment."""
    defaults: Mapping[str, str] = field(default_factory=dict)
    """Name to the version that users get if they give none."""
    hidden: frozenset[str] = frozenset()
    """Modules that `module avail` does not list; who knows the name can load them."""
    deprecated: Mapping[str, Deprecation] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    """The sha256 of each file of the generation, by its path; empty if an older version wrote it."""
    before: int | None = None
    """The number of the generation that this one replaced."""
    does: str = ""
    """What was done, as a phrase: `publishes knl/tensorflow/2.15.1-0123456789`."""
    user: str = ""
    host: str = ""
    since: str = ""
    """When: ISO 8601 in UTC."""

    def is_default(self, module: str) -> bool:
        """Whether users get this module by its name alone, because an admin chose it."""
        name, _, version = module.rpartition("/")
        return self.defaults.get(name) == version

    def names(self) -> tuple[str, ...]:
        """The names of all modules, without versions."""
        return tuple(dict.fromkeys(module.rpartition("/")[0] for module in self.modules))

    def to_dict(self) -> dict[str, Any]:
        """What `generation.json` holds; the modules have files of their own."""
        return {
            "schema": SCHEMA,
            "does": self.does,
            "user": self.user,
            "host": self.host,
            "since": self.since,
            "before": self.before,
            "defaults": dict(self.defaults),
            "hidden": sorted(self.hidden),
            "deprecated": {
                module: {"date": found.date, "text": found.text} for module, found in self.deprecated.items()
            },
            "files": dict(self.files),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], modules: Mapping[str, str]) -> Generation:
        """Read back what `to_dict` returned; `modules` are those of the generation.

        Raises:
            ValueError: it is damaged, or a newer version wrote it.
        """
        stored.refuse_newer(data, SCHEMA)
        defaults, files = stored.mapping(data, "defaults"), stored.mapping(data, "files")
        deprecated = stored.mapping(data, "deprecated")
        before = stored.optional_number(data, "before")
        return cls(
            modules=modules,
            defaults={name: stored.text(defaults, name) for name in defaults},
            hidden=frozenset(stored.texts(data, "hidden")),
            deprecated={module: read_deprecation(stored.mapping(deprecated, module)) for module in deprecated},
            files={path: stored.text(files, path) for path in files},
            before=None if before is None else int(before),
            does=stored.text(data, "does"),
            user=stored.text(data, "user"),
            host=stored.text(data, "host"),
            since=stored.text(data, "since"),
        )


def read_deprecation(data: Mapping[str, Any]) -> Deprecation:
    """A deprecation from plain JSON values. Raises `ValueError` if it is damaged."""
    return Deprecation(date=stored.text(data, "date"), text=stored.text(data, "text"))


def is_date(text: str) -> bool:
    """Whether this is a day of this century, as `2027-03-01`."""
    match = DATE.fullmatch(text)
    return match is not None and 1 <= int(match[2]) <= 12 and 1 <= int(match[3]) <= DAYS[int(match[2]) - 1]
