"""Refuse paths in a profile that are relative, longer than a path can be, or not possible in PATH.

A relative path would mean another file in every folder that a user stands in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from provision.profile.reader import Faults

Keyed = Iterable[tuple[str, str | None]]
"""Values with the keys of the profile that have them."""
SEPARATORS = ':"'
START = re.compile(r"/|~|\$")
# In bytes: what file systems and the kernel take (`NAME_MAX`, `PATH_MAX`), less the paths that we make below the root.
LONGEST_PART, LONGEST_PATH = 255, 3000


def refuse_relative(paths: Keyed, programs: Keyed, faults: Faults) -> None:
    """Record a fault for each path and program that starts in the working directory."""
    for key, value in paths:
        if value and not START.match(value):
            variable = faults.variables.get(key)
            by = f" (from `${{{variable}}}`)" if variable else ""
            faults.add(key, f"must be an absolute path, but is {value!r}{by}", variable)
    for key, value in programs:
        if value and "/" in value and not START.match(value):
            faults.add(key, f"must be a name on PATH or an absolute path, but is {value!r}")


def refuse_separators(root: str, faults: Faults) -> None:
    """Record a fault for a root with a character that ends a path in PATH, in a modulefile or in a script's first line."""
    if bad := sorted(set(root) & set(SEPARATORS)):
        names = " and ".join(f"`{character}`" for character in bad)
        faults.add(
            "root", f"contains {names}, which PATH and modulefiles cannot hold: {root!r}", faults.variables.get("root")
        )


def refuse_long(values: Keyed, faults: Faults) -> None:
    """Record a fault for each path and program that is longer than the name of a file can be."""
    for key, value in values:
        path = (value or "").encode("utf-8", "surrogatepass")
        part = max(map(len, path.split(b"/")))
        if part > LONGEST_PART:
            faults.add(key, f"has a part of {part} bytes between two slashes; at most {LONGEST_PART} are possible")
        elif len(path) > LONGEST_PATH:
            faults.add(key, f"has {len(path)} bytes; at most {LONGEST_PATH} are possible")
