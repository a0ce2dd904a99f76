"""How a command is declared: its options and arguments as data.

The parser, the help, completion, the manual page and the reference are all made from these values.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from provision.commands import VERBS

# What the value of an option or argument names, from the word that the help shows for it: completion offers such names.
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

# How often a word stands, by the end of its spelling.
ENDS: dict[str, int | str] = {"...]": "*", "...": "+", "]": "?"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """An option, or an argument, which has no `names`: a word without an option in front of it.

    `word` is the value in the help, empty for a switch; `number` is how many there are, in argparse's notation. `to` is the
    name of the value in `args`, and `read` makes it from the text. A `default` that is a function is called for each command
    line. An `again` option can be repeated. The help leaves a `rare` option to `--help-all`.
    """

    names: tuple[str, ...]
    word: str
    number: int | str | None
    purpose: str
    to: str
    choices: tuple[str, ...] = ()
    default: Any = None
    read: Callable[[str], object] | None = None
    again: bool = False
    required: bool = False
    rare: bool = False

    @property
    def is_switch(self) -> bool:
        """Whether it is an option without a value."""
        return not self.word

    @property
    def omitted(self) -> Any:
        """The value without it."""
        return False if self.is_switch else self.default() if callable(self.default) else self.default

    @property
    def kind(self) -> str:
        """What the value names, of `KINDS`; empty if completion offers nothing, or only `choices`."""
        return "" if self.choices else KINDS.get(self.word, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Options together: in the help under their `title`, if there is one; of `one_of`, only one can be given."""

    options: tuple[Option, ...]
    title: str = ""
    text: str | None = None
    one_of: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOptions:
    """A verb, or a verb and a sub-verb; a verb that has sub-verbs takes nothing itself.

    `run` is the function that does it, as `module:function` below `provision.commands`. The module is loaded when it runs.
    """

    name: str
    purpose: str
    groups: tuple[Group, ...] = ()
    subverbs: tuple[CommandOptions, ...] = ()
    run: str = ""
    examples: tuple[str, ...] = ()
    note: str | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """The verb, and the sub-verb if there is one."""
        return tuple(self.name.split())

    @property
    def leaves(self) -> tuple[CommandOptions, ...]:
        """The commands with options: the verb, or its sub-verbs."""
        return self.subverbs or (self,)

    @property
    def arguments(self) -> tuple[Option, ...]:
        """Its arguments, in their order."""
        return tuple(one for group in self.groups for one in group.options if not one.names)

    @property
    def options(self) -> tuple[Option, ...]:
        """Its options in the order of the help, with those that every command has."""
        own = tuple(one for group in self.groups for one in group.options if one.names)
        rare = any(one.rare for one in own)
        return (HELP, *own, JSON, *((HELP_ALL,) if rare else ())) if self.run else (HELP,)

    @property
    def spellings(self) -> dict[str, Option]:
        """Every option that it takes, by each of its spellings."""
        return {name: option for option in (*self.options, HELP_ALL) for name in option.names}

    @property
    def typed_examples(self) -> tuple[str, ...]:
        """The examples, as a person types them."""
        return tuple(line if "provision " in line else f"provision {line}" for line in self.examples)


def option(spelling: str, purpose: str, *, to: str = "", **more: Any) -> Option:
    """An option, or an argument, as the help spells it; `more` are other fields of `Option`.

    `--yes` is a switch, `--arch ARCH` and `--deprecate DATE TEXT` have values; `[DIR]`, `RUN...` and `[NAME...]` are arguments.
    """
    parts = [part.rstrip(",") for part in spelling.split()]
    names = tuple(part for part in parts if part.startswith("-"))
    words = parts[len(names) :]
    number = (
        len(words) if len(words) > 1 else next((sign for end, sign in ENDS.items() if spelling.endswith(end)), None)
    )
    word = " ".join(words).strip("[].")
    to = to or next((name[2:] for name in names if name.startswith("--")), word).lower().replace("-", "_")
    if more.get("choices"):
        word = word or to.upper()
    return Option(names=names, word=word, number=number, purpose=purpose, to=to, **more)


def one_of(*options: Option) -> Group:
    """Options of which only one can be given."""
    return Group(options=options, one_of=True)


def verb(name: str, *parts: Option | Group, **more: Any) -> CommandOptions:
    """A verb without sub-verbs; `more` are other fields of `CommandOptions`."""
    return subverb(name, dict(VERBS)[name], *parts, run=f"{name}:run", **more)


def subverb(name: str, purpose: str, *parts: Option | Group, run: str = "", **more: Any) -> CommandOptions:
    """A sub-verb: `venv create`. Without `run`, its function is `run_create` in the module that is named like the verb."""
    groups: list[Group] = []
    for is_group, some in itertools.groupby(parts, lambda part: isinstance(part, Group)):
        same = tuple(some)
        groups += same if is_group else (Group(options=same),)  # type: ignore[arg-type]
    run = run or name.replace(" ", ":run_")
    return CommandOptions(name=name, purpose=purpose, groups=tuple(groups), run=run, **more)


HELP = option("-h, --help", "show this help message and exit")
HELP_ALL = option("--help-all", "show this help message with all options, and exit")
JSON = option("--json", "print one JSON object on stdout, also on failure")
