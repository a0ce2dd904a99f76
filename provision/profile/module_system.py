"""A site's module system (`[modules]`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from provision.profile.reader import Reader

ModuleSystemName = Literal["none", "lmod", "environment-modules"]


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


def read_module_system(table: Reader) -> ModuleSystem:
    """Read `[modules]`; a site without that table has no module system."""
    name = table.text("system", "none", choices=("none", "lmod", "environment-modules"))
    system = ModuleSystem(
        name=name,  # type: ignore[arg-type]
        init=table.optional("init", expand=True),
        path=table.texts("path", expand=True),
        reset=table.text("reset", "purge", choices=("purge", "reset", "none")),  # type: ignore[arg-type]
    )
    if system.reset == "reset" and name != "lmod":
        table.fault("reset", "`module reset` exists only in Lmod; Environment Modules has `purge`")
    if name != "none" and system.init is None:
        table.fault("init", f"missing; the file that bash sources to define the `module` command of {name}")
    table.done()
    return system
