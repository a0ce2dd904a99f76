"""`provision completion SHELL`: the script that completes verbs, options and names in bash, zsh or fish.

The script is written from the parsers. It knows the verbs and options by itself, and asks `provision __complete` for the
names of sites, archs, stacks and environments.
"""

from __future__ import annotations

import argparse

from provision.commands.shared.outcome import Outcome

WHERE = {
    "bash": "~/.local/share/bash-completion/completions/provision",
    "zsh": "a folder of $fpath, as _provision",
    "fish": "~/.config/fish/completions/provision.fish",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the argument that names the shell."""
    parser.add_argument("shell", metavar="SHELL", choices=tuple(WHERE), help="bash, zsh or fish")
    parser.epilog = "Write the script to " + "; ".join(f"{place} ({shell})" for shell, place in WHERE.items()) + "."


def run(args: argparse.Namespace) -> Outcome:
    """Print the script."""
    from provision.commands.completion import bash, fish, zsh
    from provision.commands.shared.syntax import read_commands

    write = {"bash": bash.write_script, "zsh": zsh.write_script, "fish": fish.write_script}[args.shell]
    text = write(read_commands())
    return Outcome(text=text, result={"shell": args.shell, "script": text})
