"""What every job script has: words as bash reads them, directives with their meanings, lines that load modules. Pure."""

from __future__ import annotations

import shlex

from provision.launch.modules import reset_lines, unload_lines
from provision.model.batch import Directive
from provision.profile.module_system import ModuleSystem


class Bash(str):
    """A word that is bash already, not to be quoted."""

    __slots__ = ()


def word(text: str) -> str:
    """A word as bash reads it."""
    return str(text) if isinstance(text, Bash) else shlex.quote(text)


def header(directives: tuple[Directive, ...], behind: bool) -> tuple[str, ...]:
    """Directives with what they mean: behind them where the scheduler takes comments there, else above."""
    if not behind:
        return tuple(line for one in directives for line in (f"# {one.meaning}:", one.line))
    width = max(len(one.line) for one in directives)
    return tuple(f"{one.line:<{width}}  # {one.meaning}" for one in directives)


def module_lines(
    modules: ModuleSystem, names: tuple[str, ...], *, away: tuple[str, ...] = (), path: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """The lines that load these modules from nothing, without those `away`; `path` is searched besides the site's own."""
    if modules.name == "none":
        return ()
    lines = [*reset_lines(modules), *unload_lines(modules, away)]
    lines += [f"module use {shlex.quote(folder)}" for folder in (*reversed(modules.path), *path)]
    for name in names:
        if name.startswith("/"):  # a modulefile, which is somebody's and may be gone
            lines.append(f'[ -e {shlex.quote(name)} ] || stop "there is no modulefile {name}"')
        lines.append(f"module load {shlex.quote(name)}")
    return tuple(lines)
