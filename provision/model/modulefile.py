"""What loading a module does, as data; `provision.machine.rendering.render_modulefile` turns it into text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from provision.model import stored


@dataclass(frozen=True, slots=True, kw_only=True)
class Modulefile:
    """What loading the module does: which modules it loads, which PATH entries it prepends, and which variables it sets."""

    name: str
    version: str
    summary: str
    environment: str
    prefix: str
    modules: tuple[str, ...]
    prepend: tuple[tuple[str, str], ...]
    environ: tuple[tuple[str, str], ...]
    facts: tuple[tuple[str, str], ...]
    """What `module help` shows: labels and values, including the proof."""
    unload: tuple[str, ...] = ()
    """Modules to unload before it is loaded, such as a site's default programming environment."""
    packages: tuple[tuple[str, str], ...] = ()
    """Names and versions of packages for which `module spider` finds this module."""

    def to_dict(self) -> dict[str, Any]:
        """This modulefile as plain JSON values."""
        return {
            "name": self.name,
            "version": self.version,
            "summary": self.summary,
            "environment": self.environment,
            "prefix": self.prefix,
            "modules": list(self.modules),
            "prepend": [list(pair) for pair in self.prepend],
            "environ": [list(pair) for pair in self.environ],
            "facts": [list(pair) for pair in self.facts],
            "unload": list(self.unload),
            "packages": [list(pair) for pair in self.packages],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Modulefile:
        """Read back what `to_dict` returned. Raises `ValueError` if it is damaged."""
        return cls(
            name=stored.text(data, "name"),
            version=stored.text(data, "version"),
            summary=stored.text(data, "summary"),
            environment=stored.text(data, "environment"),
            prefix=stored.text(data, "prefix"),
            modules=stored.texts(data, "modules"),
            prepend=stored.pairs(data, "prepend"),
            environ=stored.pairs(data, "environ"),
            facts=stored.pairs(data, "facts"),
            unload=stored.texts(data, "unload"),
            packages=stored.pairs(data, "packages") if "packages" in data else (),
        )
