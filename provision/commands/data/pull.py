"""`provision data pull SOURCE [DIR]`: a script that copies results of a site to this machine, or to your home at the site.

Sites empty their scratch file systems, so what a job left there has to be copied away.
"""

from __future__ import annotations

import argparse
import posixpath
import re

from provision.commands.data.place import choose_place, refuse_controls
from provision.commands.shared.outcome import Outcome
from provision.commands.shared.parsers import command_line
from provision.commands.shared.typos import refuse_unused
from provision.errors import ConfigError
from provision.machine.configuration import shipped
from provision.machine.programs.shell import absolute
from provision.machine.rendering.render import render
from provision.machine.terminal.console import say

# rsync expands these in a path that it reads at the site.
PATTERN = re.compile(r"[*?\[\]\\]")


def run(args: argparse.Namespace) -> Outcome:
    """Write the script."""
    site = shipped.load_site(args.site)
    refuse_controls(args.source, args.folder, args.name)
    source = posixpath.normpath(args.source)
    if PATTERN.search(source) or source.startswith(("~", "$")):
        raise ConfigError(
            f"`{args.source}` is not the path of one folder or file",
            evidence=["wildcards, `~` and variables are not expanded in it"],
            hint="give an absolute path, or one below `--in scratch`, `--in project` or `--in home`",
        )
    if source in (".", "/") or source.split("/")[0] == "..":
        raise ConfigError(
            f"`{args.source}` is not a folder or file below a folder of the site", hint="name one, such as `runs/4711`"
        )
    name = args.name or posixpath.basename(source)
    if "/" in name or name in (".", ".."):
        raise ConfigError(f"{name!r} cannot be the name of the copy", hint="`--name NAME`, without `/`")
    if source.startswith("/"):
        refuse_unused(args, f"`{source}` is an absolute path", "--in", "--project")
        args.place = "home"
    place = choose_place(args, site)
    target = absolute(args.folder)
    text = render(
        "jobs/data-pull.sh.j2",
        purpose=f"Copy results from {site.title or site.name}.",
        base=place.folder,
        host=place.host,
        source=source,
        target=target,
        name=name,
        command=command_line(args),
    )
    way = f"by ssh from `{place.host}`" if place.host else "on this machine"
    say(f"note: {way}; nothing is copied yet; to copy, run the script: `provision data pull … | bash`")
    return Outcome(
        text=text, result={"source": source, "folder": target, "name": name, "host": place.host, "script": text}
    )
