"""Refuse paths in a profile that are relative, or longer than a path can be.

A relative path would mean another file in every folder that a user stands in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from provision.profile.reader import Faults

if TYPE_CHECKING:
    from provision.profile.site import Site

START = re.compile(r"/|~|\$")
# In bytes: what file systems and the kernel take (`NAME_MAX`, `PATH_MAX`), less the paths that we make below the root.
LONGEST_PART, LONGEST_PATH = 255, 3000


def refuse_relative(site: Site, faults: Faults) -> None:
    """Record a fault for each path and program of a site that starts in the working directory."""
    for key, value in _paths(site):
        if value and not START.match(value):
            variable = faults.variables.get(key)
            by = f" (from `${{{variable}}}`)" if variable else ""
            faults.add(key, f"must be an absolute path, but is {value!r}{by}", variable)
    for key, value in _programs(site):
        if value and "/" in value and not START.match(value):
            faults.add(key, f"must be a name on PATH or an absolute path, but is {value!r}")


def refuse_long(site: Site, faults: Faults) -> None:
    """Record a fault for each path and program of a site that is longer than the name of a file can be."""
    for key, value in (*_paths(site), *_programs(site)):
        path = (value or "").encode("utf-8", "surrogatepass")
        part = max(map(len, path.split(b"/")))
        if part > LONGEST_PART:
            faults.add(key, f"has a part of {part} bytes between two slashes; at most {LONGEST_PART} are possible")
        elif len(path) > LONGEST_PATH:
            faults.add(key, f"has {len(path)} bytes; at most {LONGEST_PATH} are possible")


def _paths(site: Site) -> Iterator[tuple[str, str | None]]:
    yield "root", site.root
    yield "modules.init", site.modules.init
    for index, path in enumerate(site.modules.path):
        yield f"modules.path[{index}]", path
    yield "files.scratch", site.files.scratch
    yield "files.project", site.files.project
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
