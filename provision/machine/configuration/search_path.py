"""The folders to search for sites, stacks, locks and templates, and the names in them.

The working directory is not one of them: like `.` in PATH, it would run what another user put there. This file imports
nothing that takes time to load, because completion uses it at each press of Tab.
"""

from __future__ import annotations

import os
import re
import sys

from provision.machine.files.trusted_files import read_regular

PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
INSIDE = os.path.join(PACKAGE, "_shipped")
# Of all users: beside the installed package (the folder that contains `bin/provision`), and of the machine.
SITE_WIDE = (os.path.join(sys.prefix, "etc", "provision"), "/etc/provision")


def shipped_root() -> str:
    """The folder of the shipped files: inside the package in a wheel, next to it in a checkout."""
    return INSIDE if is_installed() else os.path.dirname(PACKAGE)


def is_installed() -> bool:
    """Whether this is an installed tool, and not a checkout."""
    return os.path.isdir(INSIDE)


def user_folder() -> str:
    """The folder for the user's own configuration, which need not exist."""
    config = os.environ.get("XDG_CONFIG_HOME", "")
    # The XDG specification requires an absolute path; a relative one would be below the working directory.
    return os.path.join(config if os.path.isabs(config) else os.path.expanduser("~/.config"), "provision")


def named_folder() -> str | None:
    """The folder that `PROVISION_CONFIG` names."""
    config = os.environ.get("PROVISION_CONFIG")
    try:
        return os.path.abspath(config) if config else None
    except OSError:  # a relative name, and the working directory was removed
        return None


def own_folder() -> str:
    """The folder in which the user's own profiles are written."""
    return named_folder() or user_folder()


def locks_folder() -> str | None:
    """The folder of locks that `PROVISION_LOCKS` names: they replace those beside their inputs, for an upgrade."""
    folder = os.environ.get("PROVISION_LOCKS")
    return os.path.abspath(folder) if folder and os.path.isabs(folder) else None


def search_path() -> list[str]:
    """The folders to search, in this order; the first one with a file is used. The shipped files are the last."""
    folders = [named_folder(), user_folder(), *SITE_WIDE, shipped_root()]
    return list(dict.fromkeys(folder for folder in folders if folder and os.path.isabs(folder)))


def unused_here() -> list[str]:
    """The folders `sites` and `stacks` of the working directory, unless it is on the search path."""
    try:
        here = os.getcwd()
    except OSError:  # it was removed
        return []
    folders = [] if here in map(os.path.realpath, search_path()) else ["sites", "stacks"]
    return [name for name in folders if os.path.isdir(os.path.join(here, name))]


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
            return read_regular(path)[0].decode("utf-8")
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
        with os.scandir(path) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))
    except OSError:
        return []
