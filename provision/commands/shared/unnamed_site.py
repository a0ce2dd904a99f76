"""A verb that names no site where Slurm answers: it is about the site `local`, this node alone, which is rarely meant."""

from __future__ import annotations

import argparse

from provision.commands.shared.parsers import command_line, options_in
from provision.errors import ConfigError
from provision.machine.programs.shell import default_site
from provision.machine.terminal.console import say

BUILDS = ("build", "upgrade")
LOOKS = ("plan", "doctor", "compat", "fetch")


def check_site(args: argparse.Namespace) -> None:
    """Raise if this verb would build for the login node of a cluster because no site was named, or note it if it only looks.

    Raises:
        ConfigError: it would build, with this node's compiler, into the root of `local`.
    """
    if args.leaf.name not in (*BUILDS, *LOOKS) or "--site" in options_in(args.given) or default_site(otherwise=""):
        return
    from provision.machine.probes.ask_scheduler import is_login_node  # most verbs need no schedulers

    if not is_login_node():
        return
    what = "this is a node of a cluster with Slurm, and no site was named"
    hint = "`provision site list` lists the sites that there are, `provision site new NAME` writes the profile of a new one"
    if args.leaf.name in LOOKS:
        say(f"note: {what}, so this is about the site `local`, this node alone; {hint}")
        return
    raise ConfigError(
        f"{what}: the site `local` would build for this node",
        hint=f"{hint}; `{command_line(args)}` builds here all the same",
    )
