"""`provision kernel`: let Jupyter start notebooks in an environment, in an own venv, or in the site's container."""

from __future__ import annotations

import argparse

from provision.commands.kernel import install, installed
from provision.commands.shared.parsers import SubVerb, add_subverbs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the sub-verbs."""
    add_subverbs(
        parser,
        [
            SubVerb(
                name="install",
                purpose="install one for an environment, a virtual environment of yours, or a container",
                add_arguments=install.add_arguments,
                run=install.run,
            ),
            SubVerb(
                name="list",
                purpose="list those that were installed so",
                add_arguments=installed.add_list_arguments,
                run=installed.run_list,
            ),
            SubVerb(
                name="remove",
                purpose="remove one",
                add_arguments=installed.add_remove_arguments,
                run=installed.run_remove,
            ),
        ],
    )
