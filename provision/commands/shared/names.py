"""The names that a user may complete: sites, archs, stacks, environments.

A shell asks for them at each press of Tab, so this uses `os` and `re` alone: a TOML parser and dataclasses would
take three times as long as everything else. What it misses is not offered; the verbs read the files properly.
"""

from __future__ import annotations

import re

from provision.machine.configuration.search_path import expand, folders, known, read_profile
from provision.machine.programs.shell import default_site

ARCH = re.compile(r"""^[ \t]*\[[ \t]*archs[ \t]*\.[ \t]*["']?([\w+-]+)""", re.MULTILINE)
# The shell may expand what completion prints, so a file named `$(command).toml` is not offered.
SAFE = re.compile(r"[\w.+/-]+")
ROOT = re.compile(r"""^[ \t]*root[ \t]*=[ \t]*["'](.*?)["']""", re.MULTILINE)


def names_of(kind: str = "", site: str = "") -> list[str]:
    """The names of this kind (`sites`, `archs`, `stacks`, `environments`), those of a site for some."""
    site = site or default_site() or "local"
    match kind:
        case "sites" | "stacks":
            names = known(kind)
        case "archs":
            names = list(dict.fromkeys(ARCH.findall(read_profile(site))))
        case "environments":
            root = ROOT.search(read_profile(site))
            names = environments_below(expand(root[1])) if root else []
        case _:
            names = []
    return [name for name in names if SAFE.fullmatch(name)]


def environments_below(root: str) -> list[str]:
    """The environments below a root, `arch/name/version-fingerprint`."""
    found = [""]
    for _ in range(3):
        found = [f"{parent}{name}/" for parent in found for name in folders(f"{root}/envs/{parent}")]
    return [name.rstrip("/") for name in found]
