"""`provision completion SHELL`: the script that completes verbs, options and names in bash, zsh or fish.

The script is written from the declarations of the options. It knows the verbs and options by itself, and asks
`provision __complete` for the names of sites, archs, stacks and environments.
"""

from __future__ import annotations

import argparse

from provision.commands.completion import bash, fish, zsh
from provision.commands.options import COMMANDS
from provision.commands.shared.outcome import Outcome

WRITERS = {"bash": bash.write_script, "zsh": zsh.write_script, "fish": fish.write_script}


def run(args: argparse.Namespace) -> Outcome:
    """Print the script."""
    text = WRITERS[args.shell](tuple(COMMANDS.values()))
    return Outcome(text=text, result={"shell": args.shell, "script": text})
