"""The command line as data, read from the parsers: what completion, the man page and the reference are written from."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

from provision.commands import VERBS
from provision.commands.shared.parsers import Parser, parser_of

# What the value of an option or argument names, from the word that the help shows for it.
KINDS = {
    "SITE": "sites",
    "ARCH": "archs",
    "STACK": "stacks",
    "ENVIRONMENT": "environments",
    "FILE": "files",
    "LOG": "files",
    "PROGRAM": "files",
    "PATH": "files",
    "DIR": "folders",
    "RUN": "folders",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A value that is typed: the word for it in the help, what it names (a kind of `KINDS` or nothing), or its choices."""

    word: str
    kind: str = ""
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """An option: its spellings, its value unless it is a switch, and what it is for."""

    names: tuple[str, ...]
    value: Value | None
    purpose: str
    again: bool = False
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """A word without an option in front of it."""

    value: Value
    purpose: str
    optional: bool = False
    many: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A verb, or a verb and a sub-verb, with what it takes; a verb that has sub-verbs takes nothing itself."""

    words: tuple[str, ...]
    purpose: str
    arguments: tuple[Argument, ...] = ()
    options: tuple[Option, ...] = ()
    subverbs: tuple[Command, ...] = ()

    @property
    def name(self) -> str:
        """The words in one."""
        return " ".join(self.words)


def read_commands() -> tuple[Command, ...]:
    """Every verb, as its parser has it."""
    return tuple(read_command(parser_of(verb), (verb,)) for verb, _ in VERBS)


def every_command(commands: tuple[Command, ...]) -> Iterator[Command]:
    """The commands and their sub-verbs, in the order of the help."""
    for command in commands:
        yield command
        yield from command.subverbs


def read_command(parser: Parser, words: tuple[str, ...]) -> Command:
    """One command, from its parser."""
    purpose = parser.description or ""
    if parser.subverbs:
        subverbs = tuple(read_command(leaf, (*words, name)) for name, leaf in parser.subverbs.items())
        return Command(words=words, purpose=purpose, subverbs=subverbs)
    return Command(
        words=words,
        purpose=purpose,
        arguments=tuple(read_argument(action) for action in parser.actions if not action.option_strings),
        options=tuple(read_option(action) for action in parser.actions if action.option_strings),
    )


def read_option(action: argparse.Action) -> Option:
    """One option."""
    return Option(
        names=tuple(action.option_strings),
        value=None if action.nargs == 0 else read_value(action),
        purpose=action.help or "",
        again=isinstance(action, argparse._AppendAction),
        required=action.required,
    )


def read_argument(action: argparse.Action) -> Argument:
    """One argument."""
    return Argument(
        value=read_value(action),
        purpose=action.help or "",
        optional=action.nargs in ("?", "*"),
        many=action.nargs in ("*", "+"),
    )


def read_value(action: argparse.Action) -> Value:
    """What an option or argument takes."""
    word = action.metavar if isinstance(action.metavar, str) else action.dest.upper().replace("_", "-")
    choices = tuple(map(str, action.choices or ()))
    return Value(word=word, kind="" if choices else KINDS.get(word, ""), choices=choices)
