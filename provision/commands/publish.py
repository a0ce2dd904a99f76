"""`provision publish ENV`: let users load an environment that passed its proof, or change how its module is shown."""

from __future__ import annotations

from pathlib import Path

from provision.commands.shared.after_publish import after_publish
from provision.commands.shared.environments import named_environment
from provision.commands.shared.outcome import Args, Outcome
from provision.commands.shared.typos import refuse_text
from provision.errors import StoreError, UsageError
from provision.machine.root.checking import glance
from provision.machine.root.completing import command_to_complete, hint_to_complete
from provision.machine.root.publishing import Publisher
from provision.machine.root.sealing import seal
from provision.machine.root.store import Store
from provision.machine.terminal.console import say
from provision.model.generation import Deprecation, Generation, is_date
from provision.model.layout import EnvironmentId
from provision.planning.publication import Marks, changes, differences, short


def run(args: Args) -> Outcome:
    """Show what changes, then change it with one rename."""
    marks = read_marks(args)
    site, store, env = named_environment(args)
    seen = glance(store, env, loaded=str(env) in store.pointers().values())
    if seen.why and seen.record is None:
        raise StoreError(
            f"`{env}` is broken, so it cannot be published again",
            evidence=[seen.why],
            hint=f"`{command_to_complete(store, env, site)}` builds another one beside it",
            kind="damaged-record",
        )
    if args.force is not None and not args.dry_run:
        _force(store, env, args.force)
    publisher = Publisher(store)
    try:
        before, after, lines = publisher.preview(env, marks)
    except StoreError as error:
        if error.kind == "unproved":
            error.hint = hint_to_complete(store, env, site)
        raise
    changed = changes(before, after)
    for line in lines:
        say(line)
    number = None
    if not args.dry_run and (changed or lines or store.generations.damaged(env.arch)):
        number = publisher.publish(env, marks).number
        after_publish(site, store, "publish", env.arch, str(env))
    module = f"{env.name}/{env.version}"
    return Outcome(
        text="\n".join([*_replaced(store, env, before), *(changed or lines or ["nothing changes"])]),
        result={"environment": str(env), "module": module, "generation": number, "changes": changed, "diff": lines},
    )


def read_marks(args: Args) -> Marks:
    """How the module is to be shown.

    Raises:
        ConfigError: the date or a text is not valid.
    """
    deprecation = None
    if args.deprecate:
        date, text = args.deprecate
        if not is_date(date):
            raise UsageError(f"`{date}` is not a date", hint='write it as `--deprecate 2027-03-01 "load VERSION"`')
        deprecation = Deprecation(date=date, text=text)
    refuse_text("--deprecate", deprecation.text if deprecation else None)
    refuse_text("--force", args.force)
    return Marks(
        default=True if args.default else False if args.no_default else None,
        hidden=True if args.hidden else False if args.visible else None,
        deprecation=deprecation,
        no_deprecation=args.no_deprecate,
    )


def _force(store: Store, env: EnvironmentId, reason: str) -> None:
    """Write the record of an environment whose proof failed, with the reason."""
    if store.record(env) is not None:
        raise UsageError(f"`{env}` passed its proof, so it needs no `--force`", hint=f"`provision publish {env}`")
    does = {"does": f"publishes {env}"}
    with store.held(Path(store.layout.lock(env)), does, wait=False):
        try:
            seal(store, env, forced=reason)
        except StoreError as error:
            error.hint = error.hint or "`provision build` builds it"
            raise


def _replaced(store: Store, env: EnvironmentId, before: Generation) -> list[str]:
    """What users of the module got before, and what is different, in one line."""
    old = before.modules.get(f"{env.name}/{env.version}")
    if old is None or old == str(env):
        return []
    try:
        first, second = store.record(EnvironmentId.parse(old)), store.record(env)
    except (StoreError, ValueError):
        return []
    if first is None or second is None:
        return []
    lines = differences(first.versions, second.versions, (first.identity, second.identity))
    return [f"replaces {short(old)}: {', '.join(lines) or 'the same versions'}"]
