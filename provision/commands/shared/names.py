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
EXTENDS = re.compile(r"""^[ \t]*extends[ \t]*=[ \t]*["']([\w.+-]+)""", re.MULTILINE)
MOST_EXTENDED = 8
ROOT = re.compile(r"""^[ \t]*root[ \t]*=[ \t]*["'](.*?)["']""", re.MULTILINE)


def names_of(kind: str = "", site: str = "") -> list[str]:
    """The names of this kind (`sites`, `archs`, `stacks`, `environments`), those of a site for some."""
    site = site or default_site() or "local"
    match kind:
        case "sites" | "stacks":
            names = known(kind)
        case "archs":
            names = list(dict.fromkeys(ARCH.findall(profile_text(site))))
        case "environments":
            root = ROOT.search(profile_text(site))
            names = environments_below(expand(root[1])) if root else []
        case _:
            names = []
    return [name for name in names if SAFE.fullmatch(name)]


def profile_text(site: str) -> str:
    """The text of a site's profile, followed by that of each profile that it extends."""
    texts = [read_profile(site)]
    while (base := EXTENDS.search(texts[-1])) and len(texts) < MOST_EXTENDED:
        texts.append(read_profile(f"vendors/{base[1]}") or read_profile(base[1]))
    return "\n".join(texts)


def environments_below(root: str) -> list[str]:
    """The environments below a root, `arch/name/version-fingerprint`."""
    found = [""]
    for _ in range(3):
        found = [f"{parent}{name}/" for parent in found for name in folders(f"{root}/envs/{parent}")]
    return [name.rstrip("/") for name in found]
