"""A generation: the modules that users of one arch can load at one time, and how a module system shows them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from provision.model.stored import Stored

DATE = re.compile(r"(20\d\d)-(\d\d)-(\d\d)")
DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deprecation(Stored):
    """From which day (`2027-03-01`) a module may be gone, and what users should do."""

    date: str
    text: str

    @property
    def warning(self) -> str:
        """What a user reads who loads the module."""
        return f"is deprecated and may be removed after {self.date}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation(Stored):
    """What users of one arch can load. Modules are named `<name>/<version>`."""

    SCHEMA: ClassVar[int] = 1
    does: str = ""
    """What was done, as a phrase: `publishes knl/tensorflow/2.15.1-0123456789`."""
    user: str = ""
    host: str = ""
    since: str = ""
    """When: ISO 8601 in UTC."""
    before: int | None = None
    """The number of the generation that this one replaced."""
    defaults: Mapping[str, str] = field(default_factory=dict)
    """Name to the version that users get if they give none."""
    hidden: frozenset[str] = frozenset()
    """Modules that `module avail` does not list; they still load by their full names."""
    deprecated: Mapping[str, Deprecation] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    """The sha256 of each file of the generation, by its path; empty if an older version wrote it."""
    modules: Mapping[str, str] = field(default_factory=dict)
    """Module to environment."""

    def is_default(self, module: str) -> bool:
        """Whether users get this module by its name alone, because an admin chose it."""
        name, _, version = module.rpartition("/")
        return self.defaults.get(name) == version

    def marks(self, module: str) -> dict[str, str]:
        """How a module is shown: its marks, each with its text, which only a deprecation has."""
        deprecation = self.deprecated.get(module)
        found = {"default": "" if self.is_default(module) else None, "hidden": "" if module in self.hidden else None}
        found["deprecated"] = f"after {deprecation.date}: {deprecation.text}" if deprecation else None
        return {mark: text for mark, text in found.items() if text is not None}

    def names(self) -> tuple[str, ...]:
        """The names of all modules, without versions."""
        return tuple(dict.fromkeys(module.rpartition("/")[0] for module in self.modules))

    def to_dict(self) -> dict[str, Any]:
        """What `generation.json` holds; the modules have files of their own."""
        return {key: value for key, value in Stored.to_dict(self).items() if key != "modules"}


def is_date(text: str) -> bool:
    """Whether this is a day of this century, as `2027-03-01`."""
    match = DATE.fullmatch(text)
    return match is not None and 1 <= int(match[2]) <= 12 and 1 <= int(match[3]) <= DAYS[int(match[2]) - 1]
