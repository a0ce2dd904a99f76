"""What loading a module does, as data; `provision.machine.render_modulefile` turns it into text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Modulefile:
    """What loading the module does: modules it needs, PATH entries it prepends, variables it sets."""

    name: str
    version: str
    summary: str
    environment: str
    prefix: str
    modules: tuple[str, ...]
    prepend: tuple[tuple[str, str], ...]
    environ: tuple[tuple[str, str], ...]
    facts: tuple[tuple[str, str], ...]
    """What `module help` tells: label and value, the proof among them."""
    unload: tuple[str, ...] = ()
    """Modules that must not stay loaded beside it: a site's default programming environment."""
