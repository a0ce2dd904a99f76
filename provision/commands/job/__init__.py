"""`provision job`: write a job script on stdout, check one, or follow a job to its end.

`single`, `mirrored`, `multiworker`, `horovod` and a site's own plug-ins are users' jobs (`user`); `image` and `overlay`
prepare a container for them (`prepare`); `build` and `follow` are an administrator's; `lint` checks a script.
"""

from __future__ import annotations

import argparse

from provision.commands.job import build, follow, lint, prepare, user
from provision.commands.shared.parsers import add_subverbs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the kinds of job, each with its own options."""
    add_subverbs(parser, (*build.SUBVERBS, *follow.SUBVERBS, *prepare.SUBVERBS, *user.SUBVERBS, *lint.SUBVERBS))
