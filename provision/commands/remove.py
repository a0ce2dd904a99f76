"""`provision remove ENV`: remove one environment. Shows what goes; `--yes` does it."""

from __future__ import annotations

from provision.commands.shared.environments import named_environment
from provision.commands.shared.outcome import Args, Outcome
from provision.errors import ConfigError
from provision.machine.files.disk import is_file
from provision.machine.probes.ask_scheduler import running_jobs
from provision.machine.root.removing import Remover, removed_for
from provision.planning.removal import days, freed, refuse_protected, to_dict


def run(args: Args) -> Outcome:
    """Refuse what users load, what is pinned, and what is in use; remove the rest with one rename."""
    site, store, env = named_environment(args)
    remover = Remover(store, running_jobs(site.scheduler.name))
    (resident,) = remover.residents([env])
    refuse_protected(resident)
    stays = ""
    if is_file(f"{store.layout.prefix(env)}/spack.yaml"):
        stays = "\nits packages stay in Spack's store; `provision prune` shows those that no environment uses"
    what = f"{'finished' if resident.finished else 'unfinished'}, {days(resident.age_s)} old"
    if args.yes:
        why = remover.remove(env)
        if why is not None:
            raise ConfigError(
                f"`{env}` was not removed: {why}", hint="`provision list` shows its state", kind="protected"
            )
    verb = "removed" if args.yes else "would be removed"
    text = f"{verb}: {env}: {removed_for(resident) if args.yes and resident.foreign else freed([resident])}"
    hint = "" if args.yes else f"\n`provision remove {env} --yes` removes it"
    return Outcome(text=f"{text}{stays}{hint}", result={"removed": args.yes, **to_dict(resident, what)})
