"""The values of a new profile that this machine shows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from provision.machine.configuration.search_path import named_folder, user_folder
from provision.machine.disk import is_file
from provision.profile.network import PROXY


def path_of_new_profile(name: str) -> Path:
    """The path of a new profile, where the verbs find it: below `PROVISION_CONFIG`, or below the user's folder."""
    return Path(named_folder() or user_folder()) / "sites" / f"{name}.toml"


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
