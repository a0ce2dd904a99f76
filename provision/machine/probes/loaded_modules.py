"""The module system of this machine: the environment without modules and with some, and the modules that there are."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Mapping

from provision.errors import CommandError
from provision.launch import modules
from provision.launch.available_modules import AvailableModule, describe, list_script, parse_available
from provision.launch.program_path import steady_first
from provision.machine.files.disk import exists, is_file
from provision.machine.programs.run import capture
from provision.model.quoting import bash
from provision.profile.module_system import ModuleSystem
from provision.profile.site import Site
from provision.wording import nearest, nearest_name

BASH = ("bash", "--noprofile", "--norc", "-c")


def environment_after(script: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment that a script of `launch.modules` prints at its end.

    Raises:
        CommandError: it failed; the evidence is what the module system wrote.
    """
    done = capture((*BASH, script), environ, needs="everything")
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise CommandError("the module system did not start", evidence=lines)
    return modules.parse_environment(done.stdout)


def unloaded(system: ModuleSystem) -> dict[str, str]:
    """The caller's environment, cleaned, without the modules that the caller has loaded and without their effects.

    If the profile does not say `purge`, the modules of the login shell stay: `module reset` needs them to restore the site's
    defaults, and a Cray XC does not work without them. PATH begins with the folders that are the same in every shell.
    """
    environ: Mapping[str, str] = os.environ
    purged = system.name == "none" or system.reset == "purge"
    if purged and system.name != "none":
        if environ.get("LOADEDMODULES"):
            with contextlib.suppress(CommandError):
                environ = environment_after(modules.purge_script(system), environ)
        environ = modules.drop_module_state(environ)
    path = steady_first(environ.get("PATH", ""), os.environ.get("HOME", ""), purged=purged)
    return {**modules.clean_environ(environ), "PATH": path}


def init_of_this_shell() -> str:
    """The file that bash sources to define the `module` of this shell; empty if there is none."""
    homes = (os.environ.get(name) for name in ("LMOD_PKG", "MODULESHOME"))
    return next((f"{home}/init/bash" for home in homes if home and is_file(f"{home}/init/bash")), "")


def as_here(system: ModuleSystem) -> ModuleSystem:
    """The module system, with the init file of this shell if that of the profile is not here: some profiles guess it."""
    here = "" if system.name == "none" or is_file(system.init or "") else init_of_this_shell()
    return dataclasses.replace(system, init=here) if here else system


def folders_of_this_shell(system: ModuleSystem) -> tuple[str, ...] | None:
    """The folders in MODULEPATH of this shell that a job would not search; None if the module system is not known here.

    Folders that a loaded module added are left out: a job searches them too, when it has loaded that module.
    """
    if not is_file(system.init or ""):
        return None
    try:
        here: Mapping[str, str] = os.environ
        if here.get("LOADEDMODULES"):
            here = environment_after(modules.purge_script(system), here)
        fresh = environment_after(modules.load_script(system, ()), unloaded(system))
    except CommandError:
        return None
    searched = fresh.get("MODULEPATH", "").split(":")
    ours = [folder for folder in here.get("MODULEPATH", "").split(":") if folder and folder not in searched]
    return tuple(dict.fromkeys(ours))


def available_modules(system: ModuleSystem, origin: str) -> tuple[AvailableModule, ...]:
    """The modules that the site's module system offers here, with what each brings; `origin` is the profile's path.

    Raises:
        CommandError: this machine does not have the module system, or it does not answer.
    """
    system = as_here(system)
    init = system.init or ""
    if not is_file(init):
        raise CommandError(
            f"the module system's init file `{init}` does not exist",
            evidence=[f"`modules.init` in `{origin}`"],
            hint="run this on a node of the site",
        )
    done = capture((*BASH, list_script(system)), unloaded(system))
    if done.returncode:
        raise CommandError(
            "the module system does not list its modules",
            evidence=[line for line in done.stderr.splitlines() if line.strip()][-6:],
            hint=f"run `source {init}`, then `module avail`",
        )
    return tuple(describe(name) for name in parse_available(done.stdout))


def what_to_load(site: Site, failed: str, where: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """For a module that cannot be loaded: what comes behind the message (the nearest name), and the hint.

    `where` is the place of the module in the profile.
    """
    system, family = site.modules, failed.split("/")[0]
    script = modules.load_script(system, (), last=bash("module -t avail %s 2>&1 | cat >&3", family))
    try:
        listed = capture((*BASH, script), environ).stdout.splitlines()
    except CommandError:
        listed = []
    available = [name for name in parse_available("\n".join(listed)) if name.startswith(f"{family}/")]
    if available:
        latest = modules.find_newest_module(failed, available)
        newest = f" (newest: `{latest}`)" if latest else ""
        return "", f"`module avail {family}` lists {', '.join(available)}{newest}; change {where}"
    try:
        names = [module.name for module in available_modules(system, site.origin)]
    except CommandError:
        names = []
    for folder in folders_of_this_shell(system) or ():
        if exists(f"{folder}/{failed}") or exists(f"{folder}/{failed}.lua"):
            return (
                "",
                f"your shell finds it in `{folder}`, which jobs do not search: add it to `modules.path` in `{site.origin}`",
            )
    if near := nearest_name(failed, names):
        return nearest(failed, names), f"write `{near}` in {where}; `module avail` lists all modules"
    return "", f"find the module with `module avail`, then change {where}"
