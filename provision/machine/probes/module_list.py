"""The modules that this machine offers."""

from __future__ import annotations

from collections.abc import Mapping

from provision.errors import CommandError
from provision.launch.available_modules import AvailableModule, describe, list_script, parse_available
from provision.launch.modules import find_newest_module, load_script
from provision.machine.files.disk import exists, is_file
from provision.machine.probes.module_path import folders_of_this_shell
from provision.machine.probes.unloaded import unloaded
from provision.machine.programs.run import capture
from provision.model.quoting import bash
from provision.profile.module_system import ModuleSystem
from provision.profile.site import Site
from provision.wording import nearest, nearest_name

TIME_LIMIT_S = 120


def available_modules(system: ModuleSystem, origin: str) -> tuple[AvailableModule, ...]:
    """The modules that the site's module system offers here, with what each brings; `origin` is the profile's path.

    Raises:
        CommandError: this machine does not have the module system, or it does not answer.
    """
    init = system.init or ""
    if not is_file(init):
        raise CommandError(
            f"the module system's init file `{init}` does not exist",
            evidence=[f"`modules.init` in `{origin}`"],
            hint="run this on a node of the site",
        )
    done = capture(("bash", "--noprofile", "--norc", "-c", list_script(system)), unloaded(system), TIME_LIMIT_S)
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
    script = load_script(system, (), last=bash("module -t avail %s 2>&1 | cat >&3", family))
    try:
        listed = capture(("bash", "--noprofile", "--norc", "-c", script), environ).stdout.splitlines()
    except CommandError:
        listed = []
    available = [name for name in parse_available("\n".join(listed)) if name.startswith(f"{family}/")]
    if available:
        latest = find_newest_module(failed, available)
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
