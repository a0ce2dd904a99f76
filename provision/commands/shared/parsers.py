"""The parser of every verb, built from the verb's own file, and how words become arguments.

argparse holds the options and prints the help. Which sub-verb is meant, and every refusal, is decided here, so that a
wrong word is always an error with a hint and a command that works.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from provision.commands import VERBS
from provision.errors import ConfigError
from provision.wording import nearest, nearest_name

if TYPE_CHECKING:
    from provision.commands.shared.outcome import Outcome


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
