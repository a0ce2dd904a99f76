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
from provision.commands.shared.help_extras import RARE, examples_of
from provision.errors import ConfigError
from provision.wording import count, nearest, nearest_name

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
        self.rare: tuple[str, ...] = ()
        self.examples: tuple[str, ...] = ()

    @property
    def options(self) -> dict[str, argparse.Action]:
        """Every option of this parser, by each of its spellings."""
        return {name: action for action in self._actions for name in action.option_strings}

    @property
    def actions(self) -> tuple[argparse.Action, ...]:
        """Options and arguments in their order, without those that hold sub-verbs."""
        return tuple(action for action in self._actions if not isinstance(action, argparse._SubParsersAction))

    def format_help(self) -> str:
        """The help without the options that few need, with examples; `format_all` has all options."""
        hidden = [action for action in self._actions if {*action.option_strings} & {*self.rare}]
        purposes = [action.help for action in hidden]
        for action in hidden:
            action.help = argparse.SUPPRESS
        text = self.format_all()
        for action, purpose in zip(hidden, purposes, strict=True):
            action.help = purpose
        if hidden:
            text += f"\n`{self.prog} --help-all` shows {count(len(hidden), 'more option')}.\n"
        return text

    def format_all(self) -> str:
        """The help with all options, and with examples."""
        examples = "".join(f"  {line}\n" for line in self.examples)
        return f"{super().format_help()}\nexamples:\n{examples}" if examples else super().format_help()

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
        finish(parser)
        parser.set_defaults(run=command.run)
    return parser


class HelpAll(argparse.Action):
    """Prints the help with all options."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str) -> None:  # noqa: A002  (argparse's name)
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, default=argparse.SUPPRESS, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        """Print it, and exit."""
        assert isinstance(parser, Parser)
        print(parser.format_all(), end="")
        parser.exit()


def finish(leaf: Parser) -> None:
    """Add what every verb has: `--json`, examples, and `--help-all` if the help leaves options to it."""
    leaf.add_argument("--json", action="store_true", help="print one JSON object on stdout, also on failure")
    words = leaf.prog.split()[1:]
    leaf.examples = examples_of(" ".join(words))
    if set(rare := RARE.get(words[0], ())) & leaf.options.keys():
        leaf.rare = rare
        leaf.add_argument("--help-all", action=HelpAll, help="show this help message with all options, and exit")


def add_subverbs(parser: argparse.ArgumentParser, subverbs: Sequence[SubVerb]) -> None:
    """Give a verb its sub-verbs, each with its own parser."""
    assert isinstance(parser, Parser)
    group = parser.add_subparsers(title="sub-verbs", metavar="SUB-VERB", parser_class=Parser)
    for subverb in subverbs:
        leaf = group.add_parser(subverb.name, help=subverb.purpose, description=subverb.purpose)
        subverb.add_arguments(leaf)
        assert isinstance(leaf, Parser)
        finish(leaf)
        leaf.set_defaults(run=subverb.run, subverb=subverb.name)
        parser.subverbs[subverb.name] = leaf
