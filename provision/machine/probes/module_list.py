"""The modules that this machine offers."""

from __future__ import annotations

from provision.errors import CommandError
from provision.launch.available_modules import AvailableModule, describe, list_script, parse_available
from provision.machine.disk import is_file
from provision.machine.probes.probe import unloaded
from provision.machine.programs.run import capture
from provision.profile.module_system import ModuleSystem

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
