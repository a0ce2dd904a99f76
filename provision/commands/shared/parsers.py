"""The parser of every verb, built from the verb's own file, and how words become arguments.

argparse holds the options and prints the help. Which sub-verb is meant, and every refusal, is decided here, so that a
wrong word is always an error with a hint and a command that works.
"""

from __future__ import annotations

import argparse
import importlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from provision.commands import VERBS
from provision.errors import ConfigError
from provision.wording import nearest, nearest_name

if TYPE_CHECKING:
    from provision.commands.shared.outcome import Outcome

NUMBER = re.compile(r"-\d+$|-\d*\.\d+$")


@dataclass(frozen=True, slots=True, kw_only=True)
class SubVerb:
    """One thing that a verb does, with its own options: `job build`, `site new`."""

    name: str
    purpose: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], Outcome]


class Parser(argparse.ArgumentParser):
    """An argparse parser that raises a `ConfigError` for what it refuses, and names the nearest word."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"allow_abbrev": False, **settings})
        self.subverbs: dict[str, Parser] = {}

    @property
    def options(self) -> dict[str, argparse.Action]:
        """Every option of this parser, by each of its spellings."""
        return {name: action for action in self._actions for name in action.option_strings}

    @property
    def actions(self) -> tuple[argparse.Action, ...]:
        """Options and arguments in their order, without those that hold sub-verbs."""
        return tuple(action for action in self._actions if not isinstance(action, argparse._SubParsersAction))

    def error(self, message: str) -> NoReturn:
        """Refuse the words."""
        raise ConfigError(f"{message[:1].lower()}{message[1:]}", hint=f"`{self.prog} --help`", kind="usage")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a value that is not one of the option's choices."""
        choices = [] if action.choices is None else [str(choice) for choice in action.choices]
        if choices and value not in choices:
            name = action.option_strings[-1] if action.option_strings else (action.metavar or action.dest)
            near = nearest_name(str(value), choices)
            raise ConfigError(
                f"`{value}` is not a valid value of `{name}`{nearest(str(value), choices)}",
                evidence=[f"valid: {', '.join(choices)}"],
                hint=f"`{self.prog} --help`",
                kind="usage",
                correction=(str(value), near) if near else None,
            )


def parser_of(verb: str) -> Parser:
    """The parser of a verb, with all its options."""
    command = importlib.import_module(f"provision.commands.{verb}")
    parser = Parser(prog=f"provision {verb}", description=dict(VERBS)[verb])
    command.add_arguments(parser)
    if not parser.subverbs:
        add_json(parser)
        parser.set_defaults(run=command.run)
    return parser


def add_json(parser: argparse.ArgumentParser) -> None:
    """The option that every verb has."""
    parser.add_argument("--json", action="store_true", help="print one JSON object on stdout, also on failure")


def add_subverbs(parser: argparse.ArgumentParser, subverbs: Sequence[SubVerb]) -> None:
    """Give a verb its sub-verbs, each with its own parser."""
    assert isinstance(parser, Parser)
    group = parser.add_subparsers(title="sub-verbs", metavar="SUB-VERB", parser_class=Parser)
    for subverb in subverbs:
        leaf = group.add_parser(subverb.name, help=subverb.purpose, description=subverb.purpose)
        subverb.add_arguments(leaf)
        add_json(leaf)
        leaf.set_defaults(run=subverb.run, subverb=subverb.name)
        parser.subverbs[subverb.name] = leaf


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
        from provision.commands.shared.typos import refuse_extra

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
            from provision.commands.shared.typos import refuse_option

            refuse_option(leaf, verb, words, name)
