"""The words of a command line, read: nothing is ignored, and what is unknown is refused with what was probably meant."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence

from provision.commands.shared.parsers import Parser, parser_of
from provision.commands.shared.typos import refuse_extra, refuse_option
from provision.errors import ConfigError
from provision.wording import nearest, nearest_name

NUMBER = re.compile(r"-\d+$|-\d*\.\d+$")


def parse(verb: str, words: Sequence[str]) -> argparse.Namespace:
    """The arguments that these words behind a verb mean; `run` among them is the function that does it.

    Raises:
        ConfigError: a word is unknown, or not an option of this verb; nothing is ignored.
        SystemExit: help was asked for and printed.
    """
    leaf, rest = find_parser(parser_of(verb), list(words))
    rest = join_arguments(leaf, rest)
    refuse_unknown_options(leaf, verb, words, rest)
    for name in (word[:-3] for word in rest if word.startswith("-") and word.endswith("=--")):
        leaf.error(f"argument {name}: expected one argument")  # argparse would make the value an empty list
    args, extra = leaf.parse_known_args(rest)
    if extra:
        refuse_extra(leaf, args, [*verb.split(), *words], extra[0])
    args.parser, args.given = leaf, tuple(rest)
    return args


def join_arguments(leaf: Parser, words: Sequence[str]) -> list[str]:
    """The words with the value of `--arguments` joined to it if that value looks like an option of another program.

    argparse reads `--arguments --data-dir=x` as two options. A value that is an option of this parser is not joined: then the
    value of `--arguments` was forgotten.
    """
    joined: list[str] = []
    for word in words:
        foreign = word.startswith("-") and word.partition("=")[0] not in leaf.options
        if foreign and joined and joined[-1] == "--arguments" and "--arguments" in leaf.options:
            joined[-1] = f"--arguments={word}"
        else:
            joined.append(word)
    return joined


def find_parser(parser: Parser, words: list[str]) -> tuple[Parser, list[str]]:
    """The parser of the sub-verb that is named among these words, and the words without it.

    An option may stand before the sub-verb: `job --site SITE build`.
    """
    if not parser.subverbs:
        return parser, words
    options = {name: action for leaf in parser.subverbs.values() for name, action in leaf.options.items()}
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] not in ("-h", "--help"):
        takes_value = words[at] in options and options[words[at]].nargs != 0
        at += 2 if takes_value else 1
    if at < len(words) and words[at] in ("-h", "--help"):
        return parser, words[at:]
    if at >= len(words):
        raise ConfigError(
            f"`{parser.prog}` needs a sub-verb",
            evidence=[f"one of: {', '.join(parser.subverbs)}"],
            hint=f"`{parser.prog} --help`",
            kind="usage",
        )
    name = words[at]
    if name not in parser.subverbs:
        near = nearest_name(name, list(parser.subverbs))
        raise ConfigError(
            f"`{parser.prog}` has no sub-verb `{name}`{nearest(name, list(parser.subverbs))}",
            evidence=[f"it has: {', '.join(parser.subverbs)}"],
            hint=f"`{parser.prog} --help`",
            kind="usage",
            correction=(name, near) if near else None,
        )
    return parser.subverbs[name], words[:at] + words[at + 1 :]


def options_in(words: Sequence[str]) -> list[str]:
    """The words that argparse reads as options, without their values."""
    before = words[: words.index("--")] if "--" in words else words
    return [
        word.partition("=")[0]
        for word in before
        if len(word) > 1 and word.startswith("-") and " " not in word and not NUMBER.match(word)
    ]


def refuse_unknown_options(leaf: Parser, verb: str, words: Sequence[str], rest: Sequence[str]) -> None:
    """Raise for the first word that is an option, but not one of this parser."""
    for name in options_in(rest):
        if name not in leaf.options:
            refuse_option(leaf, verb, words, name)
