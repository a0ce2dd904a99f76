"""`provision prune`: remove old environments, and what no environment needs. Shows a plan; `--yes` carries it out."""

from __future__ import annotations

from provision.commands.shared.environments import site_and_store
from provision.commands.shared.outcome import Args, Outcome
from provision.errors import ConfigError, UsageError
from provision.machine.files.disk import read_given
from provision.machine.probes.ask_scheduler import running_jobs
from provision.machine.root.removing import Remover
from provision.machine.terminal.console import say
from provision.planning.removal import DAY_S, Rules, Usage, decide, describe, freed, read_usage, to_dict


def run(args: Args) -> Outcome:
    """Decide what goes, show it, and remove it if that is wanted."""
    usage = _usage(args)
    site, store = site_and_store(args)
    remover = Remover(store, running_jobs(site.scheduler.name), usage)
    residents = remover.residents()
    unloaded_s = None if args.unused_for is None else args.unused_for * DAY_S
    decisions = decide(residents, Rules(keep=args.keep, older_s=args.older * DAY_S, unloaded_s=unloaded_s))
    gone = [decision.resident.environment for decision in decisions if decision.removes]
    leftovers = remover.leftovers(residents, gone, args.generations)
    lines = describe(decisions, leftovers)
    plan = {
        "environments": [{"removes": one.removes, **to_dict(one.resident, one.why)} for one in decisions],
        "leftovers": [to_dict(one, one.why) for one in leftovers],
    }
    if not args.yes:
        more = ["`--yes` removes what has a `-`"] if gone or leftovers else []
        return Outcome(text="\n".join([*lines, *more]), result={"removed": False, "kept": [], **plan})
    for line in lines:
        say(line)
    removed, kept = remover.carry_out(decisions, leftovers)
    for line in kept:
        say(f"kept after all: {line}")
    return Outcome(text=f"freed {freed(removed)}", result={"removed": True, "kept": kept, **plan})


def _usage(args: Args) -> Usage | None:
    """The loads that the log of `--usage` lists; None without that option.

    Raises:
        ConfigError: one of the two options is missing, or the log is not one of environments.
    """
    if (args.usage is None) != (args.unused_for is None):
        missing, given = ("--usage FILE", "--unused-for") if args.usage is None else ("--unused-for DAYS", "--usage")
        raise UsageError(f"`{given}` needs `{missing}`", hint=f"add `{missing}`")
    if args.usage is None:
        return None
    usage = read_usage(read_given(args.usage, "log", stdin=True, errors="replace"))
    if usage is None:
        raise ConfigError(
            f"no line of `{args.usage}` names an environment and a time",
            evidence=["such a line has `environment=ARCH/NAME/VERSION-FINGERPRINT` and `time=SECONDS`"],
            hint="docs/howto/lifecycle.md shows how Lmod writes such lines",
            kind="invalid-file",
        )
    return usage
