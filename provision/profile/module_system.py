"""A site's module system (`[modules]`)."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Literal

from provision.profile.reader import Reader

ModuleSystemName = Literal["none", "lmod", "environment-modules"]
ModuleKind = Literal["lua", "tcl"]

# What people call our keys, after the commands of module systems.
MEANT = {"use": "modules.path", "modulepath": "modules.path", "load": "archs.ARCH.modules"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleSystem:
    """How to get `module`: the file that bash sources to define it, and the folders of modulefiles to use.

    `reset` is how to start from a known state: `purge`, `reset` if the site's default modules should stay (Lmod), or
    `none` if the modules of a login shell are needed, as on a Cray XC.
    """

    name: ModuleSystemName
    init: str | None
    path: tuple[str, ...]
    reset: Literal["purge", "reset", "none"] = "purge"

    @property
    def module_kind(self) -> ModuleKind:
        """The language of the modulefiles that it reads, and the folder that ours are in."""
        return "lua" if self.name == "lmod" else "tcl"

    def load_command(self, folder: str, module: str) -> str:
        """The commands that load a module of `folder`, which may load modules of the site's folders."""
        used = (f"module use {shlex.quote(path)}" for path in (*self.path, folder))
        return "; ".join((*used, f"module load {shlex.quote(module)}"))


def read_module_system(table: Reader) -> ModuleSystem:
    """Read `[modules]`; a site without that table has no module system."""
    system = ModuleSystem(
        name=table.choice("system", ("none", "lmod", "environment-modules"), "none"),
        init=table.optional("init", expand=True),
        path=table.texts("path", expand=True),
        reset=table.choice("reset", ("purge", "reset", "none"), "purge"),
    )
    if system.reset == "reset" and system.name != "lmod":
        table.fault("reset", "`module reset` exists only in Lmod; Environment Modules has `purge`")
    if system.name != "none" and system.init is None:
        table.missing("init", f"the file that bash sources to define the `module` command of {system.name}")
    table.done(meant=MEANT)
    return system
