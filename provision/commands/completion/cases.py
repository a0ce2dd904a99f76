"""What the scripts of all shells are made of: which options have a value, and which commands share one."""

from __future__ import annotations

from collections.abc import Iterable

from provision.commands.shared.syntax import Command, Value, every_command

# In a shell, a file and a folder are completed by the shell itself, and these by `provision __complete`.
ASKED = ("sites", "archs", "stacks", "environments")
TOP = ("--help", "--version")


def options_with_value(commands: tuple[Command, ...]) -> dict[str, Value]:
    """Every option that has a value, with the value; an option means the same in every command that has it."""
    found: dict[str, Value] = {}
    for command in every_command(commands):
        for option in command.options:
            if option.value:
                for name in option.names:
                    known = found.setdefault(name, option.value)
                    assert (known.kind, known.choices) == (option.value.kind, option.value.choices), name
    return found


def group_by_value(values: dict[str, Value]) -> dict[Value, list[str]]:
    """The options of each value that can be completed."""
    groups: dict[Value, list[str]] = {}
    for name, value in values.items():
        if value.kind or value.choices:
            same = Value(word="", kind=value.kind, choices=value.choices)
            groups.setdefault(same, []).append(name)
    return groups


def argument_of(command: Command) -> Value | None:
    """What a command's arguments name, if that can be completed."""
    values = [argument.value for argument in command.arguments]
    return values[0] if values and (values[0].kind or values[0].choices) else None


def leaves(commands: Iterable[Command]) -> list[Command]:
    """The commands that have options: verbs without sub-verbs, and sub-verbs."""
    return [leaf for command in commands for leaf in (command.subverbs or (command,))]
