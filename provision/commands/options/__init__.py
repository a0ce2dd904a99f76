"""The options of every command as data: one file for each group of verbs. No file here imports what a verb runs."""

from __future__ import annotations

from provision.commands import VERBS
from provision.commands.options import building, environments, jobs, users
from provision.commands.options.declare import CommandOptions

LEAVES = (*building.COMMANDS, *environments.COMMANDS, *jobs.COMMANDS, *users.COMMANDS)


def _command(verb: str, purpose: str) -> CommandOptions:
    leaves = tuple(leaf for leaf in LEAVES if leaf.words[0] == verb)
    return leaves[0] if leaves[0].name == verb else CommandOptions(name=verb, purpose=purpose, subverbs=leaves)


# Every verb, in the order of the help.
COMMANDS = {verb: _command(verb, purpose) for verb, purpose in VERBS}


def find_command(*words: str) -> CommandOptions | None:
    """The verb or sub-verb that these words begin with; None if they begin with no verb."""
    command = COMMANDS.get(words[0]) if words else None
    if command is None:
        return None
    return next((leaf for leaf in command.subverbs if leaf.words == words[:2]), command)
