"""The argparse parser of a command, made from its declaration, and how words become arguments.

argparse reads the words and prints the help. Which sub-verb is meant, and every refusal, is decided here and in `typos`, so
that a wrong word is always an error with a hint and a command that works.
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Sequence
from typing import Any, NoReturn

from provision.commands.options import COMMANDS
from provision.commands.options.declare import HELP, HELP_ALL, JSON, CommandOptions, Option
from provision.commands.shared.typos import refuse_extra, refuse_option
from provision.errors import UsageError
from provision.wording import count, nearest, nearest_name

NUMBER = re.compile(r"-\d+$|-\d*\.\d+$")


class Parser(argparse.ArgumentParser):
    """An argparse parser of a command that raises a `ConfigError` for what it refuses, and names the nearest word.

    With `everything`, its help shows the rare options too.
    """

    def __init__(self, command: CommandOptions, *, everything: bool = False) -> None:
        name = f"provision {command.name}"
        super().__init__(prog=name, description=command.purpose, epilog=command.note, allow_abbrev=False)
        self.command, self.hidden = command, 0
        if command.subverbs:
            listed = self.add_subparsers(title="sub-verbs", metavar="SUB-VERB", parser_class=argparse.ArgumentParser)
            for leaf in command.subverbs:
                listed.add_parser(leaf.words[-1], help=leaf.purpose)
            return
        for group in command.groups:
            place: Any = self.add_argument_group(group.title, group.text) if group.title else self
            place = place.add_mutually_exclusive_group() if group.one_of else place
            for one in group.options:
                self.hidden += one.rare and not everything
                place.add_argument(*one.names, **_settings(one, shown=everything or not one.rare))
        for common in (JSON, HELP_ALL):
            self.add_argument(*common.names, **_settings(common, shown=common in command.options))

    def format_help(self) -> str:
        """The help, with examples."""
        text = super().format_help()
        examples = "".join(f"  {line}\n" for line in self.command.typed_examples)
        text += f"\nexamples:\n{examples}" if examples else ""
        return text + (
            f"\n`{self.prog} --help-all` shows {count(self.hidden, 'more option')}.\n" if self.hidden else ""
        )

    def error(self, message: str) -> NoReturn:
        """Refuse the words."""
        raise UsageError(f"{message[:1].lower()}{message[1:]}", hint=f"`{self.prog} --help`")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a value that is not one of the option's choices."""
        choices = [] if action.choices is None else [str(choice) for choice in action.choices]
        if choices and value not in choices:
            name = action.option_strings[-1] if action.option_strings else (action.metavar or action.dest)
            near = nearest_name(str(value), choices)
            raise UsageError(
                f"`{value}` is not a valid value of `{name}`{nearest(str(value), choices)}",
                evidence=[f"valid: {', '.join(choices)}"],
                hint=f"`{self.prog} --help`",
                correction=(str(value), near) if near else None,
            )


class Once(argparse.Action):
    """The value of an option that has one; argparse alone would take the last of several and ignore the others."""

    typed: str | None = None

    def __call__(
        self, parser: object, namespace: argparse.Namespace, values: Any, option_string: str | None = None
    ) -> None:
        """Take the value, if it is the only one."""
        typed = " ".join(map(str, values)) if isinstance(values, list) else str(values)
        if self.typed not in (None, typed):
            raise UsageError(
                f"`{option_string}` has two values: `{self.typed}` and `{typed}`",
                hint="give one; run the command again for the other",
            )
        self.typed = typed
        setattr(namespace, self.dest, values)


def _settings(option: Option, *, shown: bool) -> dict[str, Any]:
    """The keywords of argparse for an option or argument."""
    settings: dict[str, Any] = {"help": option.purpose if shown else argparse.SUPPRESS, "dest": option.to}
    settings |= {"default": option.omitted}
    if option.is_switch:
        return {**settings, "action": "store_true"}
    words = tuple(option.word.split())
    settings |= {"metavar": words if len(words) > 1 else option.word, "nargs": option.number}
    if option.choices:
        settings["choices"] = option.choices
        if option.word == option.to.upper() and option.names:
            del settings["metavar"]  # the help shows the choices
    if option.read:
        settings["type"] = option.read
    if option.again:
        settings["action"] = "extend" if option.number else "append"
    elif option.names:
        settings["action"] = Once
    return {**settings, "required": option.required} if option.names else settings


def parse(verb: str, words: Sequence[str]) -> argparse.Namespace:
    """The arguments that these words behind a verb mean; `command` among them is the command that takes them.

    Raises:
        ConfigError: a word is unknown, or not an option of this verb; nothing is ignored.
        SystemExit: help was asked for and printed.
    """
    command, rest = find_leaf(COMMANDS[verb], list(words))
    parser = Parser(command)
    rest = join_arguments(command, rest)
    for name in options_in(rest):
        if name not in command.spellings:
            refuse_option(command, verb, words, name)
    if HELP_ALL.names[0] in options_in(rest):
        Parser(command, everything=True).print_help()
        parser.exit()
    for name in (word[:-3] for word in rest if word.startswith("-") and word.endswith("=--")):
        parser.error(f"argument {name}: expected one argument")  # argparse would make the value an empty list
    args, extra = parser.parse_known_args(rest)
    if extra:
        refuse_extra(command, args, [*verb.split(), *words], extra[0])
    args.leaf, args.given = command, tuple(rest)
    return args


def join_arguments(command: CommandOptions, words: Sequence[str]) -> list[str]:
    """The words with the value of `--arguments` joined to it if that value looks like an option of another program.

    argparse reads `--arguments --data-dir=x` as two options. A value that is an option of this command is not joined: then the
    value of `--arguments` was forgotten.
    """
    joined: list[str] = []
    for word in words:
        foreign = word.startswith("-") and word.partition("=")[0] not in command.spellings
        if foreign and joined and joined[-1] == "--arguments" and "--arguments" in command.spellings:
            joined[-1] = f"--arguments={word}"
        else:
            joined.append(word)
    return joined


def find_leaf(command: CommandOptions, words: list[str]) -> tuple[CommandOptions, list[str]]:
    """The sub-verb that is named among these words, or the verb if it has none; and the words without it.

    An option may stand before the sub-verb: `job --site SITE build`.
    """
    if not command.subverbs:
        return command, words
    options = {name: option for leaf in command.subverbs for name, option in leaf.spellings.items()}
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] not in (*HELP.names, *HELP_ALL.names):
        takes_value = words[at] in options and not options[words[at]].is_switch
        at += 2 if takes_value else 1
    if at < len(words) and words[at].startswith("-"):
        return command, ["--help"]
    subverbs = {leaf.words[-1]: leaf for leaf in command.subverbs}
    if at >= len(words):
        raise UsageError(
            f"`provision {command.name}` needs a sub-verb",
            evidence=[f"one of: {', '.join(subverbs)}"],
            hint=f"`provision {command.name} --help`",
        )
    name = words[at]
    if name not in subverbs:
        near = nearest_name(name, list(subverbs))
        raise UsageError(
            f"`provision {command.name}` has no sub-verb `{name}`{nearest(name, list(subverbs))}",
            evidence=[f"it has: {', '.join(subverbs)}"],
            hint=f"`provision {command.name} --help`",
            correction=(name, near) if near else None,
        )
    return subverbs[name], words[:at] + words[at + 1 :]


def options_in(words: Sequence[str]) -> list[str]:
    """The words that argparse reads as options, without their values."""
    before = words[: words.index("--")] if "--" in words else words
    return [
        word.partition("=")[0]
        for word in before
        if len(word) > 1 and word.startswith("-") and " " not in word and not NUMBER.match(word)
    ]


def command_line(args: argparse.Namespace) -> str:
    """The command that gave these arguments; the site is named even if it was the default."""
    given = [word for word in args.given if word != "--json"]
    site = [] if "--site" in options_in(given) else ["--site", args.site]
    return shlex.join(["provision", *args.leaf.words, *site, *given])
