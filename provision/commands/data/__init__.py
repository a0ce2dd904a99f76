"""`provision data`: data sets and results of users' jobs."""

from __future__ import annotations

import argparse

from provision.commands.data import fetch, pull, push
from provision.commands.shared.parsers import SubVerb, add_subverbs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the sub-verbs."""
    add_subverbs(
        parser,
        [
            SubVerb(
                name="fetch",
                purpose="download a data set or weights, to where jobs find them",
                add_arguments=fetch.add_arguments,
                run=fetch.run,
            ),
            SubVerb(
                name="push",
                purpose="write a script that copies a data set to a folder of the site",
                add_arguments=push.add_arguments,
                run=push.run,
            ),
            SubVerb(
                name="pull",
                purpose="write a script that copies the output of a job from the site",
                add_arguments=pull.add_arguments,
                run=pull.run,
            ),
        ],
    )
