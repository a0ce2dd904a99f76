"""What to answer to a word that is not valid or not used: the verb that takes it, the nearest name, a command that works."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from provision.commands import VERBS
from provision.commands.options import COMMANDS
from provision.commands.options.declare import CommandOptions
from provision.errors import ConfigError, UsageError
from provision.wording import nearest, nearest_name

if TYPE_CHECKING:
    import argparse

    from provision.profile.site import Site

# What people who know other tools type, and the verb for it in this one.
ELSEWHERE = {
    "sites": "site list",
    "stacks": "stack list",
    "environments": "list",
    "envs": "list",
    "status": "list",
    "info": "show",
    "install": "build",
    "apply": "build",
    "create": "build",
    "check": "doctor",
    "load": "activate",
    "lint": "job lint",
    "follow": "job follow",
    "submit": "build --submit",
    "diff": "plan",
    "clean": "prune",
    "delete": "remove",
    "uninstall": "remove",
}
OPTIONS_ELSEWHERE = {"--dry-run": "plan", "-n": "plan", "--lint": "job lint", "--list": "list"}
# The letters of other tools for options that have only a long name here.
LONG = {"-v": "--verbose", "-a": "--all", "-n": "--dry-run", "-f": "--yes", "-y": "--yes"}


def refuse_verb(word: str, rest: Sequence[str]) -> NoReturn:
    """Raise a `ConfigError` for a verb that does not exist."""
    verbs = [verb for verb, _ in VERBS]
    if word.startswith("-"):
        raise ConfigError(f"no verb is given, only `{word}`", hint="`provision --help`", kind="unknown-verb")
    if word in ELSEWHERE:
        raise ConfigError(f"there is no verb `{word}`", hint=f"`provision {ELSEWHERE[word]}`", kind="unknown-verb")
    near = nearest_name(word, [*verbs, "help", "version"])
    raise ConfigError(
        f"there is no verb `{word}`{nearest(word, [*verbs, 'help', 'version'])}",
        hint=f"`{shlex.join(['provision', near, *rest])}`" if near else "`provision --help`",
        kind="unknown-verb",
    )


def refuse_option(leaf: CommandOptions, verb: str, words: Sequence[str], name: str) -> NoReturn:
    """Raise a `ConfigError` for an option that this verb does not take, with the verbs that take it."""
    message, help_of = f"`provision {leaf.name}` does not take `{name}`", f"`provision {leaf.name} --help`"
    siblings = [one for one in COMMANDS[verb].leaves if name in one.spellings]
    if LONG.get(name) in leaf.spellings:
        raise UsageError(message, correction=(name, LONG[name]), hint=help_of)
    elsewhere = OPTIONS_ELSEWHERE.get(name)
    takers = siblings or [one for command in COMMANDS.values() for one in command.leaves if name in one.spellings]
    if takers and (siblings or not elsewhere):
        names = ", ".join(f"`provision {one.name}`" for one in takers[:6]) + (", …" if len(takers) > 6 else "")
        without = without_option([verb, *words], name, takes_value=not takers[0].spellings[name].is_switch)
        raise UsageError(
            message,
            evidence=[f"`{name}` is an option of {names}"],
            hint=f"leave it out: `{shlex.join(['provision', *without])}`",
        )
    options = [option for option in leaf.spellings if option != "--help"]
    near = nearest_name(name, options)
    if near:
        raise UsageError(f"{message}{nearest(name, options)}", correction=(name, near), hint=help_of)
    raise UsageError(message, hint=f"`provision {elsewhere}`" if elsewhere else help_of)


def without_option(words: Sequence[str], name: str, *, takes_value: bool) -> list[str]:
    """These words without an option and its value."""
    kept = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word == name:
            skip = takes_value
        elif not word.startswith(f"{name}="):
            kept.append(word)
    return kept


def refuse_extra(leaf: CommandOptions, args: argparse.Namespace, words: Sequence[str], word: str) -> NoReturn:
    """Raise a `ConfigError` for a word that this verb does not take; a known name gets the option that takes it."""
    from provision.commands.shared.names import names_of

    for kind in ("stack", "arch", "site"):
        option = f"--{kind}"
        if option not in leaf.spellings:
            continue
        near = nearest_name(word, names_of(f"{kind}s", getattr(args, "site", "local")))
        if near and getattr(args, kind) in (None, leaf.spellings[option].omitted):
            at = list(words).index(word)
            better = [*words[:at], option, near, *words[at + 1 :]]
            what = f"`{word}` is the name of a {kind}" if near == word else f"did you mean the {kind} `{near}`?"
            raise UsageError(
                f"`provision {leaf.name}` takes no argument `{word}`",
                evidence=[what],
                hint=f"`{shlex.join(['provision', *better])}`",
            )
    raise UsageError(f"`provision {leaf.name}` takes no argument `{word}`", hint=f"`provision {leaf.name} --help`")


def refuse_submit(args: argparse.Namespace, site: Site) -> None:
    """Raise a `ConfigError` for `--submit` at a site without a scheduler; the hint is the command that runs here."""
    if not args.submit or site.scheduler.name != "none":
        return
    words = [word for word in args.given if word not in ("--submit", "--no-wait", "--all-archs")]
    here = shlex.join(["provision", *args.leaf.words, *without_option(words, "--account", takes_value=True)])
    raise ConfigError(f"site `{site.name}` has no scheduler, so there is no job to submit", hint=f"`{here}`")


def given_of(args: argparse.Namespace, names: Sequence[str]) -> list[str]:
    """Those of these options that have another value than without them."""
    options = {name: args.leaf.spellings[name] for name in names}
    return [name for name, option in options.items() if getattr(args, option.to) != option.omitted]


def refuse_unused(args: argparse.Namespace, why: str, *names: str) -> None:
    """Raise a `UsageError` for the first of these options that was given: it would be ignored."""
    for name in given_of(args, names):
        message = f"`provision {args.leaf.name}` would not use `{name}` here: {why}"
        raise UsageError(message, hint=f"leave `{name}` out")


def refuse_text(name: str, text: str | None) -> None:
    """Raise a `ConfigError` for a text of this option that is empty, or that other people could not read in one line."""
    if text is not None and not (text.strip() and text.isprintable()):
        raise ConfigError(f"the text of `{name}` is empty or has control characters", hint="write one sentence")


def refuse_other_than_one(args: argparse.Namespace, *switches: str, hint: str) -> None:
    """Raise a `ConfigError` unless exactly one is given: an environment, or one of these options, which stand for one."""
    chosen = [args.environment] if args.environment is not None else []
    chosen += given_of(args, switches)
    if len(chosen) == 1:
        return
    given = f"{' and '.join(f'`{name}`' for name in chosen)} were given" if chosen else "none was given"
    one = f"an environment, {' or '.join(f'`{name}`' for name in switches)}"
    raise UsageError(f"exactly one is needed: {one}; {given}", hint=hint)
