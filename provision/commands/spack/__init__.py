"""`provision spack`: set up the site's Spack, and write the environments for plain Spack."""

from __future__ import annotations

import argparse

from provision.commands.shared.parsers import SubVerb, add_subverbs
from provision.commands.spack import environments, setup


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the sub-verbs."""
    add_subverbs(
        parser,
        (
            SubVerb(
                name="setup",
                purpose="copy one commit of Spack below the root, with what runs it",
                add_arguments=setup.add_arguments,
                run=setup.run,
            ),
            SubVerb(
                name="show",
                purpose="write spack.yaml and its packages, or print spack.yaml",
                add_arguments=environments.add_show_arguments,
                run=environments.run_show,
            ),
            SubVerb(
                name="diff",
                purpose="compare a folder of environments with what show writes",
                add_arguments=environments.add_diff_arguments,
                run=environments.run_diff,
            ),
        ),
    )
