"""A site's module system (`[modules]`)."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from provision.profile.absolute import ExpandedPath
from provision.profile.reader import Key, Reader

ModuleSystemName = Literal["none", "lmod", "environment-modules"]
ModuleKind = Literal["lua", "tcl"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleSystem:
    """How to get `module`: the file that bash sources to define it, and the folders of modulefiles to use.

    `reset` is how to start from a known state: `purge`, `reset` if the site's default modules should stay (Lmod), or
    `none` if the modules of a login shell are needed, as on a Cray XC.
    """

    MEANT: ClassVar[Mapping[str, str]] = {
        "use": "modules.path",
        "modulepath": "modules.path",
        "load": "archs.ARCH.modules",
    }
    """What people call our keys, after the commands of module systems."""
    name: Annotated[ModuleSystemName, Key("system")] = "none"
    init: ExpandedPath | None = None
    path: tuple[ExpandedPath, ...] = ()
    reset: Literal["purge", "reset", "none"] = "purge"

    def add_faults(self, table: Reader) -> None:
        """Record a module system without the file that defines it, and a `reset` that it does not have."""
        if self.reset == "reset" and self.name != "lmod":
            table.fault("reset", "`module reset` exists only in Lmod; Environment Modules has `purge`")
        if self.name != "none" and self.init is None:
            table.missing("init", f"the file that bash sources to define the `module` command of {self.name}")

    @property
    def module_kind(self) -> ModuleKind:
        """The language of the modulefiles that it reads, and the folder that ours are in."""
        return "lua" if self.name == "lmod" else "tcl"

    def load_command(self, folder: str, module: str) -> str:
        """The commands that load a module of `folder`, which may load modules of the site's folders."""
        used = (f"module use {shlex.quote(path)}" for path in (*self.path, folder))
        return "; ".join((*used, f"module load {shlex.quote(module)}"))
