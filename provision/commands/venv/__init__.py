"""`provision venv`: a user's own virtual environment on top of a published environment."""

from __future__ import annotations

import argparse

from provision.commands.shared.parsers import SubVerb, add_subverbs
from provision.commands.venv import check, create


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the sub-verbs."""
    add_subverbs(
        parser,
        [
            SubVerb(
                name="create",
                purpose="make one in which the stack imports and pip adds to it",
                add_arguments=create.add_arguments,
                run=create.run,
            ),
            SubVerb(
                name="check",
                purpose="check one: is the environment under it the same, does a package hide one of the stack",
                add_arguments=check.add_arguments,
                run=check.run,
            ),
        ],
    )
