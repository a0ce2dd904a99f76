"""`provision rollback`: users load again what they loaded before the last publication."""

from __future__ import annotations

from provision.commands.shared.after_publish import after_publish
from provision.commands.shared.environments import arch_below, describe_arch, site_and_store
from provision.commands.shared.outcome import Args, Outcome
from provision.commands.shared.typos import refuse_unused
from provision.errors import ConfigError
from provision.machine.root.publishing import Publisher
from provision.planning.publication import changes, describe_generation
from provision.profile.site import Site
from provision.wording import add_arch


def run(args: Args) -> Outcome:
    """Replace the pointer with one rename."""
    if args.list:
        refuse_unused(args, "`--list` only lists", "--generation", "--dry-run")
    site, store = site_and_store(args, lenient=True)
    arch = one_arch(store.generations.archs(), site, args.arch)
    publisher, generations = Publisher(store), store.generations
    found, current = generations.read_all(arch), generations.current(arch)
    if args.list:
        rows = [
            {"number": number, "current": number == current, "modules": dict(one.modules), "before": one.before}
            | {"does": one.does or None, "user": one.user or None, "since": one.since or None}
            for number, one in sorted(found.items())
        ]
        lines = [
            f"{'*' if number == current else ' '} {describe_generation(number, found[number])}" for number in found
        ]
        return Outcome(text="\n".join(lines) or "nothing was published", result={"arch": arch, "generations": rows})
    number = publisher.target(arch, current, found, args.generation)
    if not args.dry_run:
        done = publisher.roll_back(arch, args.generation)
        number, changed = done.number, changes(done.before, done.after)
        after_publish(site, store, "rollback", arch)
    else:
        changed = changes(found[current] if current in found else type(found[number])(), found[number])
    what = "would go" if args.dry_run else "went"
    text = [f"arch {arch} {what} from generation {current} to {number}", *(changed or ["no module changes"])]
    if not args.dry_run and current in found:
        text.append(f"forward again: `provision rollback --arch {arch} --generation {current}`")
    return Outcome(
        text="\n".join(text),
        result={"arch": arch, "generation": number, "before": current, "changes": changed},
    )


def one_arch(archs: list[str], site: Site, name: str | None) -> str:
    """The arch that is meant, as in the names of environments: that of the site's arch `name`, or the only one in `archs`.

    Raises:
        ConfigError: there is none, or there are several and none is named.
    """
    below = arch_below(site, name)
    if below in archs:
        return str(below)
    listing = ", ".join(f"`{arch}`" for arch in archs)
    if not archs or name is not None:
        raise ConfigError(
            f"nothing was published for arch {describe_arch(site, name)}"
            if name
            else "nothing was published below this root",
            evidence=[f"archs with modules: {listing or 'none'}"],
            hint="`provision list` shows what is published",
            kind="no-generation",
        )
    if len(archs) > 1:
        raise ConfigError(
            f"modules were published for several archs: {listing}",
            hint=add_arch(archs),
            kind="ambiguous-arch",
        )
    return archs[0]
