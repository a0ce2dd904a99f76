"""The processes of this machine that use an environment now."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path, PurePath


def processes_below(folders: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The processes of this machine that have a file below each of these folders open, mapped, or as working folder.

    Only those that we may look at: all of them for root.
    """
    found: dict[str, list[str]] = {folder: [] for folder in folders}
    top = os.path.commonpath(folders) if folders else "/"
    tops = {top, os.path.realpath(top)}  # the kernel has no links in its paths
    for process in Path("/proc").glob("[0-9]*") if folders else ():
        if process.name != str(os.getpid()):
            lines = _paths_of(process).split("\n")
            paths = {top + line.partition(place)[2] for place in tops for line in lines if place in line}
            for folder in {str(parent) for path in paths for parent in (path, *PurePath(path).parents)} & found.keys():
                found[folder].append(f"process {process.name} of this machine uses it")
    return {folder: tuple(lines) for folder, lines in found.items()}


def _paths_of(process: Path) -> str:
    """The paths that a process uses, in one text."""
    parts = []
    for link in ("exe", "cwd"):
        with contextlib.suppress(OSError):
            parts.append(str((process / link).readlink()))
    with contextlib.suppress(OSError, UnicodeDecodeError):
        parts.append((process / "maps").read_text())
    with contextlib.suppress(OSError):
        for opened in (process / "fd").iterdir():
            with contextlib.suppress(OSError):
                parts.append(str(opened.readlink()))
    with contextlib.suppress(OSError):
        # A virtual environment's python is a link: only the first word of the command names the environment.
        parts.append((process / "cmdline").read_bytes().split(b"\0")[0].decode(errors="replace"))
    return "\n".join(parts)
