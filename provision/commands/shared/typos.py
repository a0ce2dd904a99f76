"""What to answer to a word that is not valid: the verb that takes it, the nearest name, a command that works."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from provision.commands import VERBS
from provision.commands.shared.parsers import Parser, parser_of
from provision.errors import ConfigError
from provision.wording import nearest, nearest_name

if TYPE_CHECKING:
    import argparse

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


def refuse_verb(word: str, rest: Sequence[str]) -> NoReturn:
    """Raise for a verb that does not exist.

    Raises:
        ConfigError: always.
    """
    verbs = [verb for verb, _ in VERBS]
    if word in ELSEWHERE:
        raise ConfigError(f"there is no verb `{word}`", hint=f"`provision {ELSEWHERE[word]}`", kind="unknown-verb")
    near = nearest_name(word, [*verbs, "help", "version"])
    raise ConfigError(
        f"there is no verb `{word}`{nearest(word, [*verbs, 'help', 'version'])}",
        hint=f"`{shlex.join(['provision', near, *rest])}`" if near else "`provision --help`",
        kind="unknown-verb",
    )


def leaves(parser: Parser) -> list[Parser]:
    """The parsers that have options: the verb's, or those of its sub-verbs."""
    return list(parser.subverbs.values()) or [parser]


def refuse_option(leaf: Parser, verb: str, words: Sequence[str], name: str) -> NoReturn:
    """Raise for an option that this verb does not take, with the verbs that take it.

    Raises:
        ConfigError: always.
    """
    message = f"`{leaf.prog}` does not take `{name}`"
    siblings = [parser for parser in leaves(parser_of(verb)) if name in parser.options]
    elsewhere = OPTIONS_ELSEWHERE.get(name)
    takers = siblings or [parser for other, _ in VERBS for parser in leaves(parser_of(other)) if name in parser.options]
    if takers and (siblings or not elsewhere):
        names = ", ".join(f"`{parser.prog}`" for parser in takers[:6]) + (", …" if len(takers) > 6 else "")
        without = without_option([verb, *words], name, takes_value=takers[0].options[name].nargs != 0)
        raise ConfigError(
            message,
            evidence=[f"`{name}` is an option of {names}"],
            hint=f"leave it out: `{shlex.join(['provision', *without])}`",
            kind="usage",
        )
    near = nearest_name(name, list(leaf.options))
    if near:
        raise ConfigError(
            f"{message}{nearest(name, list(leaf.options))}",
            correction=(name, near),
            hint=f"`{leaf.prog} --help`",
            kind="usage",
        )
    raise ConfigError(message, hint=f"`provision {elsewhere}`" if elsewhere else f"`{leaf.prog} --help`", kind="usage")


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


def refuse_extra(leaf: Parser, args: argparse.Namespace, words: Sequence[str], word: str) -> NoReturn:
    """Raise for a word that this verb does not take; a known name gets the option that takes it.

    Raises:
        ConfigError: always.
    """
    from provision.commands.shared.names import names_of

    for kind in ("stack", "arch", "site"):
        option = f"--{kind}"
        if option not in leaf.options:
            continue
        near = nearest_name(word, names_of(f"{kind}s", getattr(args, "site", "local")))
        if near and getattr(args, kind) in (None, leaf.get_default(kind)):
            at = list(words).index(word)
            better = [*words[:at], option, near, *words[at + 1 :]]
            what = f"`{word}` is the name of a {kind}" if near == word else f"did you mean the {kind} `{near}`?"
            raise ConfigError(
                f"`{leaf.prog}` takes no argument `{word}`",
                evidence=[what],
                hint=f"`{shlex.join(['provision', *better])}`",
                kind="usage",
            )
    raise ConfigError(f"`{leaf.prog}` takes no argument `{word}`", hint=f"`{leaf.prog} --help`", kind="usage")
