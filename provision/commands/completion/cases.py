"""What the scripts of all shells are made of: which options have a value, and which commands share one."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from provision.commands.options.declare import CommandOptions, Option

# In a shell, a file and a folder are completed by the shell itself, and these by `provision __complete`.
ASKED = ("sites", "archs", "stacks", "environments")
TOP = ("--help", "--version")


def options_with_value(commands: Iterable[CommandOptions]) -> dict[str, Option]:
    """Every option that has a value; it names the same in every command that has the option."""
    found: dict[str, Option] = {}
    for option in (option for leaf in leaves(commands) for option in leaf.options if not option.is_switch):
        for name in option.names:
            known = found.setdefault(name, option)
            assert (known.kind, known.choices) == (option.kind, option.choices), name
    return found


def words_of_head(commands: Iterable[CommandOptions], between: str, quote: Callable[[str], str]) -> dict[str, str]:
    """What stands in the first lines of a script: the options with a value, and the verbs and sub-verbs as they are typed."""
    return {
        "valued": between.join(options_with_value(commands)),
        "verbs": between.join(quote(f" {command.name}") for command in commands),
        "subverbs": between.join(quote(leaf.name) for command in commands for leaf in command.subverbs),
    }


def group_by_value(options: dict[str, Option]) -> list[tuple[Option, list[str]]]:
    """The spellings of the options whose values can be completed, those with the same values together, with one of them."""
    groups: dict[tuple[str, tuple[str, ...]], tuple[Option, list[str]]] = {}
    for name, option in options.items():
        if option.kind or option.choices:
            groups.setdefault((option.kind, option.choices), (option, []))[1].append(name)
    return list(groups.values())


def argument_of(command: CommandOptions) -> Option | None:
    """What a command's arguments name, if that can be completed."""
    first = command.arguments[0] if command.arguments else None
    return first if first and (first.kind or first.choices) else None


def leaves(commands: Iterable[CommandOptions]) -> list[CommandOptions]:
    """The commands that have options: verbs without sub-verbs, and sub-verbs."""
    return [leaf for command in commands for leaf in command.leaves]
