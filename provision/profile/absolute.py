"""Refuse relative paths in a profile: they would mean another file in every folder that a user stands in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from provision.profile.reader import Faults

if TYPE_CHECKING:
    from provision.profile.site import Site

START = re.compile(r"/|~|\$")


def refuse_relative(site: Site, faults: Faults) -> None:
    """Record a fault for each path and program of a site that starts in the working directory."""
    for key, value in _paths(site):
        if value and not START.match(value):
            faults.add(key, f"must be an absolute path, but is {value!r}")
    for key, value in _programs(site):
        if value and "/" in value and not START.match(value):
            faults.add(key, f"must be a name on PATH or an absolute path, but is {value!r}")


def _paths(site: Site) -> Iterator[tuple[str, str | None]]:
    yield "root", site.root
    yield "modules.init", site.modules.init
    for index, path in enumerate(site.modules.path):
        yield f"modules.path[{index}]", path
    yield "files.scratch", site.files.scratch
    yield "files.temporary", site.files.temporary
    if site.container:
        yield "container.overlay", site.container.overlay
        yield "container.setup", site.container.setup
        for template in site.container.overlay_templates:
            yield "container.overlay_templates", template.path


def _programs(site: Site) -> Iterator[tuple[str, str | None]]:
    for arch in site.archs:
        yield f"archs.{arch.name}.python", arch.python
        yield f"archs.{arch.name}.compiler.cxx", arch.compiler.cxx
        yield f"archs.{arch.name}.compiler.cc", arch.compiler.cc
        yield f"archs.{arch.name}.mpi.cxx", arch.mpi.cxx
