"""`provision unpublish ENV`: take its module away from users. The environment stays until `prune` or `remove`."""

from __future__ import annotations

from provision.commands.shared.after_publish import after_publish
from provision.commands.shared.environments import named_environment
from provision.commands.shared.outcome import Args, Outcome
from provision.machine.root.publishing import Publisher
from provision.planning.publication import changes, unpublish


def run(args: Args) -> Outcome:
    """Take the module away with one rename; jobs that have loaded it keep working."""
    site, store, env = named_environment(args, lenient=True)
    before = store.generations.published(env.arch)
    after, number = unpublish(before, env), None
    if not args.dry_run:
        done = Publisher(store).unpublish(env)
        before, after, number = done.before, done.after, done.number
        after_publish(site, store, "unpublish", env.arch, str(env))
    would = "would no longer" if args.dry_run else "no longer"
    return Outcome(
        text=f"users of arch `{env.arch}` {would} load `{env.name}/{env.version}`; the environment `{env}` stays"
        + ("" if args.dry_run else f"\n`provision publish {env}` publishes it again"),
        result={"environment": str(env), "generation": number, "changes": changes(before, after)},
    )
