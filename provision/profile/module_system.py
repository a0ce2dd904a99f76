"""A site's module system, as `[modules]` describes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from provision.profile.reader import Reader

ModuleSystemName = Literal["none", "lmod", "environment-modules"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleSystem:
    """How `module` comes to be: the file that bash sources for it, and the folders of modulefiles to use.

    `reset` is how one starts from nothing: `purge`, `reset` where the site's own defaults are to stay (Lmod), or `none`
    where what a login shell has loaded is needed, as on a Cray XC.
    """

    name: ModuleSystemName
    init: str | None
    path: tuple[str, ...]
    reset: Literal["purge", "reset", "none"] = "purge"


def read_module_system(table: Reader) -> ModuleSystem:
    """The module system of `[modules]`; a site without that table has none."""
    name = table.text("system", "none", choices=("none", "lmod", "environment-modules"))
    system = ModuleSystem(
        name=name,  # type: ignore[arg-type]
        init=table.optional("init", expand=True),
        path=table.texts("path", expand=True),
        reset=table.text("reset", "purge", choices=("purge", "reset", "none")),  # type: ignore[arg-type]
    )
    if system.reset == "reset" and name != "lmod":
        table.fault("reset", "`module reset` is Lmod's; Environment Modules has `purge`")
    if name != "none" and system.init is None:
        table.fault("init", f"missing; the file that bash sources so that `module` of {name} is there")
    table.done()
    return system
