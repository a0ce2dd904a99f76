"""The environment of this shell without the modules that are loaded in it."""

from __future__ import annotations

import os
from collections.abc import Mapping

from provision.launch.modules import clean_environ, drop_module_state, parse_environment, purge_script
from provision.launch.program_path import steady_first
from provision.machine.programs.run import capture
from provision.profile.module_system import ModuleSystem


def unloaded(system: ModuleSystem) -> dict[str, str]:
    """The caller's environment, cleaned, without the modules that the caller has loaded and without their effects.

    If the profile does not say `purge`, the modules of the login shell stay: `module reset` needs them to restore the site's
    defaults, and a Cray XC does not work without them. PATH begins with the folders that are the same in every shell.
    """
    environ: Mapping[str, str] = os.environ
    purged = system.name == "none" or system.reset == "purge"
    if purged and system.name != "none":
        if environ.get("LOADEDMODULES"):
            done = capture(("bash", "--noprofile", "--norc", "-c", purge_script(system)), environ, needs="everything")
            if done.returncode == 0:
                environ = parse_environment(done.stdout)
        environ = drop_module_state(environ)
    path = steady_first(environ.get("PATH", ""), os.environ.get("HOME", ""), purged=purged)
    return {**clean_environ(environ), "PATH": path}
