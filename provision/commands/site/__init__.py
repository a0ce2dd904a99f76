"""`provision site`: list sites, show or check a site, and write the profile of a new site."""

from __future__ import annotations

import argparse

from provision.commands.shared.parsers import SubVerb, add_subverbs
from provision.commands.site import browse, check, new


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the sub-verbs."""
    add_subverbs(
        parser,
        (
            SubVerb(
                name="list",
                purpose="list the sites, their schedulers and archs",
                add_arguments=browse.add_list_arguments,
                run=browse.run_list,
            ),
            SubVerb(
                name="show",
                purpose="show a site: archs, scheduler, runtimes, stack",
                add_arguments=browse.add_show_arguments,
                run=browse.run_show,
            ),
            SubVerb(
                name="check",
                purpose="check a profile, its stacks and its jobs, without its machine",
                add_arguments=check.add_arguments,
                run=check.run,
            ),
            SubVerb(
                name="new",
                purpose="write the profile of a new site, from a profile with blanks",
                add_arguments=new.add_arguments,
                run=new.run,
            ),
        ),
    )
