"""The folders of modulefiles that only the caller's shell searches: a job does not, unless the profile names them."""

from __future__ import annotations

import os
from collections.abc import Mapping

from provision.errors import CommandError
from provision.launch.modules import load_script, parse_environment, purge_script
from provision.machine.files.disk import is_file
from provision.machine.probes.unloaded import unloaded
from provision.machine.programs.run import capture
from provision.profile.module_system import ModuleSystem


def folders_of_this_shell(system: ModuleSystem) -> tuple[str, ...] | None:
    """The folders in MODULEPATH of this shell that a job would not search; None if the module system is not known here.

    Folders that a loaded module added are left out: a job searches them too, when it has loaded that module.
    """
    if not is_file(system.init or ""):
        return None
    try:
        here: Mapping[str, str] = os.environ
        if here.get("LOADEDMODULES"):
            here = _environment(purge_script(system), here)
        fresh = _environment(load_script(system, ()), unloaded(system))
    except CommandError:
        return None
    searched = fresh.get("MODULEPATH", "").split(":")
    ours = [folder for folder in here.get("MODULEPATH", "").split(":") if folder and folder not in searched]
    return tuple(dict.fromkeys(ours))


def _environment(script: str, environ: Mapping[str, str]) -> Mapping[str, str]:
    done = capture(("bash", "--noprofile", "--norc", "-c", script), environ)
    if done.returncode:
        raise CommandError("the module system did not start")
    return parse_environment(done.stdout)
