"""Render a modulefile as Lua for Lmod, as Tcl for both module systems, and for the shells of sites without modules.

All come from one description, so they have the same effect. The templates are in `modulefiles/`; quoting is in
`provision.machine.rendering.render`.
"""

from __future__ import annotations

from typing import Literal, get_args

from provision.machine.rendering.render import render
from provision.model.generation import Generation
from provision.model.plan import Modulefile
from provision.profile.module_system import ModuleKind

Shell = Literal["sh", "fish", "csh"]
SHELLS: tuple[Shell, ...] = get_args(Shell)
Kind = ModuleKind | Shell


def emit_modulefile(module: Modulefile, kind: Kind, verdict: str, *, warning: str | None = None) -> str:
    """The text of the modulefile in this language.

    `verdict` is the line of `module help` about the proof, `warning` what a user sees who loads a deprecated module.
    """
    facts = (*module.facts, ("proof", verdict))
    width = max(len(label) for label, _ in facts)
    lines = [module.summary, "", *(f"{label.ljust(width)}  {value}" for label, value in facts)]
    lines += ["", f"Your own packages: `provision venv create DIR --on {module.name}/{module.version}`"]
    defaults = tuple(pair for pair in module.defaults if pair[0] not in dict(module.environ))
    owned = tuple(dict.fromkeys(name for name, _ in (*module.environ, *defaults)))
    python = f"{module.prefix}/bin/python"
    gone = (
        f"{module.name}/{module.version} cannot be loaded: {module.prefix} is gone; ask those who maintain this module"
    )
    return render(
        f"modulefiles/{'activate' if kind in SHELLS else 'module'}.{kind}.j2",
        module=module,
        help_lines=lines,
        owned=owned,
        changed=tuple(dict.fromkeys((*owned, *(name for name, _ in module.prepend)))),
        defaults=defaults,
        python=python,
        gone=gone,
        warning=warning,
    )


def emit_modulerc(generation: Generation, name: str, kind: ModuleKind) -> str:
    """The file that chooses the default version of a module, and hides versions, in the language of a module system."""
    mine = [module for module in generation.modules if module.rpartition("/")[0] == name]
    default = generation.defaults.get(name)
    return render(
        f"modulefiles/modulerc.{kind}.j2",
        name=name,
        default=f"{name}/{default}" if default else None,
        hidden=[module for module in mine if module in generation.hidden],
        deprecated=[module for module in mine if module in generation.deprecated],
    )
