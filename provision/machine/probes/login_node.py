"""The values of a new profile that this machine shows."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from provision.errors import CommandError
from provision.launch.available_modules import AvailableModule
from provision.machine.configuration.search_path import own_folder
from provision.machine.probes.loaded_modules import available_modules, folders_of_this_shell, init_of_this_shell
from provision.profile.blanks import LEAVE_OUT
from provision.profile.module_system import ModuleSystem, ModuleSystemName
from provision.profile.site import PROXY


def path_of_new_profile(name: str) -> Path:
    """The path of a new profile, where the verbs find it: below `PROVISION_CONFIG`, or below the user's folder."""
    return Path(own_folder()) / "sites" / f"{name}.toml"


def today() -> str:
    """The date of this machine: 2026-11-22."""
    return time.strftime("%Y-%m-%d")


def now_utc() -> str:
    """The time of this machine: 2026-11-22 14:05 UTC."""
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())


def modules_here() -> tuple[AvailableModule, ...]:
    """The modules of the module system that this shell uses; none if it uses none, or it does not answer."""
    path = os.environ.get("MODULEPATH", "").split(":")
    system = replace(_module_system(), path=tuple(filter(None, path)), reset="none")
    try:
        return available_modules(system, system.init or "") if system.init else ()
    except CommandError:
        return ()


def _module_system() -> ModuleSystem:
    """The module system of this shell, as a profile names it; its `init` is None if there is none."""
    name: ModuleSystemName = "lmod" if os.environ.get("LMOD_PKG") else "environment-modules"
    return ModuleSystem(name=name, init=init_of_this_shell() or None, path=())


def _module_path_here() -> str:
    """The folders of modulefiles that the profile must name, as words; `-` if jobs search all folders of this shell."""
    folders = folders_of_this_shell(_module_system())
    if folders is None or any(re.search(r"[\s,\"'\[\]]", folder) for folder in folders):
        return ""
    return " ".join(folders) or LEAVE_OUT


def values_here(keys: Sequence[str]) -> dict[str, str]:
    """The values of these keys that this machine shows; it is a login node, so they do not describe compute nodes."""
    environ = os.environ
    proxy = environ.get("https_proxy", "")
    values = {
        "root": environ.get("PROVISION_ROOT", ""),
        "files.scratch": "$SCRATCH" if environ.get("SCRATCH") else "",
        # All users can read a profile: an address with a user and a password is not suggested.
        "network.proxy": proxy if PROXY.fullmatch(proxy) else "",
        "modules.init": init_of_this_shell(),
        "modules.path": _module_path_here() if "modules.path" in keys else "",
        "container.command": next(filter(shutil.which, ("apptainer", "singularity")), ""),
    }
    return {key: values[key] for key in keys if values.get(key)}
