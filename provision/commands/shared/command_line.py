"""The command line again, for a script to say how it was written."""

from __future__ import annotations

import argparse
import shlex

from provision.commands.shared.parsers import options_in


def command_line(args: argparse.Namespace) -> str:
    """The command that gave these arguments; the site is named even if it was the default."""
    given = [word for word in args.given if word != "--json"]
    site = [] if "--site" in options_in(given) else ["--site", args.site]
    return shlex.join(["provision", *args.leaf.words, *site, *given])
