"""The values of a new profile that this machine shows."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from provision.errors import CommandError
from provision.launch.available_modules import AvailableModule
from provision.machine.configuration.search_path import own_folder
from provision.machine.disk import is_file
from provision.machine.probes.module_list import available_modules
from provision.profile.module_system import ModuleSystem, ModuleSystemName
from provision.profile.network import PROXY


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
    name: ModuleSystemName = "lmod" if os.environ.get("LMOD_PKG") else "environment-modules"
    init = values_here(["modules.init"]).get("modules.init")
    if init is None:
        return ()
    path = tuple(os.environ.get("MODULEPATH", "").split(":"))
    system = ModuleSystem(name=name, init=init, path=tuple(filter(None, path)), reset="none")
    try:
        return available_modules(system, init)
    except CommandError:
        return ()


def values_here(keys: Sequence[str]) -> dict[str, str]:
    """The values of these keys that this machine shows; it is a login node, so they do not describe compute nodes."""
    environ = os.environ
    proxy = environ.get("https_proxy", "")
    values = {
        "root": environ.get("PROVISION_ROOT", ""),
        "files.scratch": "$SCRATCH" if environ.get("SCRATCH") else "",
        # All users can read a profile: an address with a user and a password is not suggested.
        "network.proxy": proxy if PROXY.fullmatch(proxy) else "",
        "modules.init": next(
            (
                f"{environ[name]}/init/bash"
                for name in ("LMOD_PKG", "MODULESHOME")
                if environ.get(name) and is_file(f"{environ[name]}/init/bash")
            ),
            "",
        ),
    }
    return {key: values[key] for key in keys if values.get(key)}
