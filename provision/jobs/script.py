"""The parts of every job script: words quoted for bash, directives with their meanings, lines that load modules. Pure."""

from __future__ import annotations

import shlex

from provision.launch.modules import reset_lines, unload_lines
from provision.model.batch import Directive
from provision.profile.module_system import ModuleSystem


class Bash(str):
    """A word that is quoted for bash already."""

    __slots__ = ()


def word(text: str) -> str:
    """A word, quoted for bash."""
    return str(text) if isinstance(text, Bash) else shlex.quote(text)


def header(directives: tuple[Directive, ...], behind: bool) -> tuple[str, ...]:
    """Directives with their meanings: behind them if the scheduler allows comments there, otherwise above them."""
    if not behind:
        return tuple(line for directive in directives for line in (f"# {directive.meaning}:", directive.line))
    width = max(len(directive.line) for directive in directives)
    return tuple(f"{directive.line:<{width}}  # {directive.meaning}" for directive in directives)


def module_lines(
    modules: ModuleSystem, names: tuple[str, ...], *, away: tuple[str, ...] = (), path: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """The lines that unload all modules and those in `away`, then load these. `path` is searched before the site's folders."""
    if modules.name == "none":
        return ()
    lines = [*reset_lines(modules), *unload_lines(modules, away)]
    lines += [f"module use {shlex.quote(folder)}" for folder in (*reversed(modules.path), *path)]
    for name in names:
        if name.startswith("/"):  # a path of a modulefile, which may have been removed
            lines.append(f'[ -e {shlex.quote(name)} ] || stop "there is no modulefile {name}"')
        lines.append(f"module load {shlex.quote(name)}")
    return tuple(lines)
