"""The folders to search for sites, stacks, locks and templates, and the names in them.

It imports only `os` and `re`, because completion uses it at each press of Tab.
"""

from __future__ import annotations

import os
import re

PACKAGE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))


def shipped_root() -> str:
    """The folder of the shipped files: inside the package in a wheel, next to it in a checkout."""
    inside = os.path.join(PACKAGE, "_shipped")
    return inside if os.path.isdir(inside) else os.path.dirname(PACKAGE)


def search_path() -> list[str]:
    """The folders to search, in this order; the first one with a file is used."""
    config = os.environ.get("PROVISION_CONFIG")
    try:
        here = os.getcwd()
    except OSError:  # the working directory was removed
        here = PACKAGE
    local = [here] if any(os.path.isdir(os.path.join(here, name)) for name in ("sites", "stacks")) else []
    return list(dict.fromkeys([*([os.path.abspath(config)] if config else []), *local, shipped_root()]))


def known(folder: str) -> list[str]:
    """The names of the TOML files in this folder of the search path."""
    names = set()
    for place in search_path():
        try:
            names |= {name[:-5] for name in os.listdir(os.path.join(place, folder)) if name.endswith(".toml")}
        except OSError:
            continue
    return sorted(names)


def default_root() -> str:
    """The root of a user without `PROVISION_ROOT`: below the folder for a user's data."""
    data = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    return os.path.join(data, "provision")


def read_profile(site: str) -> str:
    """The text of a site's profile, or nothing."""
    paths = [site] if site.endswith(".toml") else [f"{place}/sites/{site}.toml" for place in search_path()]
    for path in paths:
        try:
            with open(path, encoding="utf-8") as file:
                return file.read()
        except (OSError, UnicodeDecodeError):
            continue
    return ""


def expand(text: str) -> str:
    """A path with its `${VARIABLES}`, as a profile's are read."""
    values = {"PROVISION_ROOT": default_root(), **os.environ}
    return os.path.expanduser(re.sub(r"\$\{(\w+)\}", lambda found: values.get(found[1], found[0]), text))


def folders(path: str) -> list[str]:
    """The folders in a folder, or nothing if it cannot be read."""
    try:
        return sorted(entry.name for entry in os.scandir(path) if entry.is_dir() and not entry.name.startswith("."))
    except OSError:
        return []
