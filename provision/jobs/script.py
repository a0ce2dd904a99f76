"""The parts of every job script: directives with their meanings, and lines that load modules. Pure."""

from __future__ import annotations

from provision.knowledge.srun_variables import OF_A_JOB, OF_A_STEP, SPELT
from provision.launch.modules import reset_lines, unload_lines
from provision.model.batch import Batch, Directive
from provision.model.quoting import Code, bash, comment, quote_inside, variable, words
from provision.profile.arch import Arch
from provision.profile.module_system import ModuleSystem
from provision.profile.scheduler import SchedulerName
from provision.profile.site import Site
from provision.schedulers import SchedulerInterface
from provision.schedulers.short_options import option_name

COMMA = Code(",")


def explain(scheduler: SchedulerInterface, batch: Batch) -> tuple[tuple[Code, ...], tuple[Code, ...]]:
    """The directives of a job, and comments that explain them, for below them.

    Directives go directly behind `#!`: Cobalt stops reading at the first line that is not one. If the scheduler allows comments
    behind them, their meanings are there.
    """
    pairs = [(one, comment(one.meaning)) for one in scheduler.directives(batch)]
    if scheduler.COMMENTS_BEHIND:
        width = max(len(one.line) for one, _ in pairs)
        return tuple(bash("%s  # %s", one.line.ljust(width), meaning) for one, meaning in pairs), ()
    options = [(comment(_option(one)), meaning) for one, meaning in pairs]
    width = max(len(option) for option, _ in options)
    lines = (bash("#   %s  %s", option.ljust(width), meaning) for option, meaning in options)
    return tuple(one.line for one, _ in pairs), (Code("# The options above:"), *lines)


def _option(directive: Directive) -> str:
    """The option without its value, which a user may change: `-n`, or `-l walltime` of PBS."""
    _, option, *rest = directive.line.split()
    return f"{option} {rest[0].partition('=')[0]}" if option in ("-l", "-W") and rest else option


def forget_line(scheduler: SchedulerName, directives: tuple[Directive, ...]) -> Code | None:
    """The line that unsets what srun would obey beside its options, but for what sbatch sets for these directives."""
    if scheduler != "slurm":
        return None
    options = (option_name(directive.line.split(maxsplit=1)[1], scheduler) for directive in directives)
    set_here = {SPELT.get(option, option.replace("-", "_").upper()) for option in options}
    names = [name for name in OF_A_JOB if name not in set_here]
    groups = (OF_A_STEP, names[: len(names) // 2], names[len(names) // 2 :])
    return bash(
        "unset SLURM_{%s} \\\n  SLURM_{%s} \\\n  SLURM_{%s}", *(COMMA.join(map(variable, group)) for group in groups)
    )


def module_lines(
    modules: ModuleSystem,
    names: tuple[str, ...],
    *,
    away: tuple[str, ...] = (),
    path: tuple[str, ...] = (),
    setup: tuple[str, ...] = (),
) -> tuple[Code, ...]:
    """The lines that unload all modules and those in `away`, load these, and run the commands `setup`.

    `path` is searched before the site's folders.
    """
    if modules.name == "none":
        return ()
    lines = [*reset_lines(modules), *unload_lines(modules, away)]
    lines += [bash("module use %s", folder) for folder in (*reversed(modules.path), *path)]
    for name in names:
        if name.startswith("/"):  # a path of a modulefile, which may have been removed
            lines.append(bash('[ -e %s ] || stop "there is no modulefile %s"', name, quote_inside(name)))
        lines.append(bash("module load %s", name))
    return (*lines, *(words(command.split(" ")) for command in setup))


def provided_lines(site: Site, arch: Arch, modules: tuple[str, ...] = ()) -> tuple[Code, ...]:
    """The lines that load TensorFlow of the site itself, or the user's `modules` of the site instead.

    The commands of the profile belong to its own modules, and to other versions of these.
    """
    names = {name.rpartition("/")[0] for name in arch.provided}
    same = not modules or any(name in arch.provided or name.rpartition("/")[0] in names for name in modules)
    return module_lines(
        site.modules,
        modules or arch.provided,
        away=arch.provided_unload,
        setup=arch.provided_setup if same else (),
    )
