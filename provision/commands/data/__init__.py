"""`provision data`: data sets of users' jobs."""

from __future__ import annotations

import argparse

from provision.commands.data import push
from provision.commands.shared.parsers import SubVerb, add_subverbs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the sub-verbs."""
    add_subverbs(
        parser,
        [
            SubVerb(
                name="push",
                purpose="write a script that copies a data set to the site's scratch",
                add_arguments=push.add_arguments,
                run=push.run,
            )
        ],
    )
