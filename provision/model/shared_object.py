"""What one compiled library says about itself: what it needs, where it searches, and which symbols it uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedObject:
    """The facts of one ELF file. `search` holds the folders of RPATH and RUNPATH, `versions` the newest version of each
    name (`GLIBC`, `GLIBCXX`) that it needs.

    `instructions`: how often the code has an instruction of each kind (`%zmm`), or None if it was not disassembled;
    `reason` says why.
    """

    path: str
    machine: str
    needed: tuple[str, ...]
    search: tuple[str, ...]
    symbols: frozenset[str]
    """Those that it defines or uses."""
    versions: tuple[tuple[str, str], ...]
    instructions: Mapping[str, int] | None = None
    reason: str = ""
