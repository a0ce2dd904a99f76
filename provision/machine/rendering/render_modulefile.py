"""Render a modulefile as Lua for Lmod, as Tcl for both module systems, and as sh for sites without modules.

All three come from one description, so they have the same effect. The templates are in `modulefiles/`; quoting is in
`provision.machine.rendering.render`.
"""

from __future__ import annotations

from typing import Literal

from provision.machine.rendering.render import render
from provision.model.modulefile import Modulefile

Kind = Literal["lua", "tcl", "sh"]

TEMPLATES: dict[Kind, str] = {"lua": "module.lua.j2", "tcl": "module.tcl.j2", "sh": "activate.sh.j2"}


def emit_modulefile(module: Modulefile, kind: Kind, verdict: str) -> str:
    """The text of the modulefile in this language; `verdict` is the line of `module help` about the proof."""
    facts = (*module.facts, ("proof", verdict))
    width = max(len(label) for label, _ in facts)
    lines = [module.summary, "", *(f"{label.ljust(width)}  {value}" for label, value in facts)]
    owned = tuple(dict.fromkeys(name for name, _ in module.environ))
    return render(f"modulefiles/{TEMPLATES[kind]}", module=module, help_lines=lines, owned=owned)
