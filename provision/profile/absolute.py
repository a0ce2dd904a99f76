"""Paths and programs in a profile: absolute, not longer than a path can be, and possible in PATH.

A relative path would mean another file in every folder that a user stands in.
"""

from __future__ import annotations

import re
from typing import Annotated

from provision.profile.patterns import ShellPath
from provision.profile.reader import Expanded, FormRule

SEPARATORS = ':"'
START = re.compile(r"/|~|\$")
# In bytes: what file systems and the kernel take (`NAME_MAX`, `PATH_MAX`), less the paths that we make below the root.
LONGEST_PART, LONGEST_PATH = 255, 3000


def relative(path: str) -> str | None:
    """What is wrong with a path that starts in the working directory."""
    return None if START.match(path) else f"must be an absolute path, but is {path!r}"


def relative_program(program: str) -> str | None:
    """What is wrong with a program that is searched in the working directory."""
    fine = "/" not in program or START.match(program)
    return None if fine else f"must be a name on PATH or an absolute path, but is {program!r}"


def separated(path: str) -> str | None:
    """What is wrong with a path that would end too early in PATH, in a modulefile or in a script's first line."""
    names = " and ".join(f"`{character}`" for character in sorted(set(path) & set(SEPARATORS)))
    return f"contains {names}, which PATH and modulefiles cannot hold: {path!r}" if names else None


def too_long(path: str) -> str | None:
    """What is wrong with a path that no file can have."""
    whole = path.encode("utf-8", "surrogatepass")
    part = max(map(len, whole.split(b"/")))
    if part > LONGEST_PART:
        return f"has a part of {part} bytes between two slashes; at most {LONGEST_PART} are possible"
    return f"has {len(whole)} bytes; at most {LONGEST_PATH} are possible" if len(whole) > LONGEST_PATH else None


Root = Annotated[
    Expanded, FormRule(relative, of_variable=True), FormRule(separated, of_variable=True), FormRule(too_long)
]
ExpandedPath = Annotated[Expanded, FormRule(relative, of_variable=True), FormRule(too_long)]
NodePath = Annotated[ShellPath, FormRule(relative), FormRule(too_long)]
Program = Annotated[str, FormRule(relative_program), FormRule(too_long)]
