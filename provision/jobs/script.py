"""The parts of every job script: directives with their meanings, and lines that load modules. Pure."""

from __future__ import annotations

from provision.launch.modules import reset_lines, unload_lines
from provision.model.batch import Directive
from provision.model.quoting import Code, bash, comment, quote_inside
from provision.profile.module_system import ModuleSystem


def header(directives: tuple[Directive, ...], behind: bool) -> tuple[Code, ...]:
    """Directives with their meanings: behind them if the scheduler allows comments there, otherwise above them."""
    pairs = [(directive.line, comment(directive.meaning)) for directive in directives]
    if not behind:
        return tuple(line for directive, meaning in pairs for line in (bash("# %s:", meaning), directive))
    width = max(len(directive) for directive, _ in pairs)
    return tuple(bash("%s  # %s", directive.ljust(width), meaning) for directive, meaning in pairs)


def module_lines(
    modules: ModuleSystem, names: tuple[str, ...], *, away: tuple[str, ...] = (), path: tuple[str, ...] = ()
) -> tuple[Code, ...]:
    """The lines that unload all modules and those in `away`, then load these. `path` is searched before the site's folders."""
    if modules.name == "none":
        return ()
    lines = [*reset_lines(modules), *unload_lines(modules, away)]
    lines += [bash("module use %s", folder) for folder in (*reversed(modules.path), *path)]
    for name in names:
        if name.startswith("/"):  # a path of a modulefile, which may have been removed
            lines.append(bash('[ -e %s ] || stop "there is no modulefile %s"', name, quote_inside(name)))
        lines.append(bash("module load %s", name))
    return tuple(lines)
