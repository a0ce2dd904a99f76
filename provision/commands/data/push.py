"""`provision data push SOURCE`: a script that copies a data set to the site's scratch, on stdout.

The verb writes a script instead of copying: a copy can take hours, so the user runs it in a terminal, where rsync continues
an interrupted copy and ssh asks for passwords. The script checks the free space first, and renames the complete copy.
"""

from __future__ import annotations

import argparse
import shlex
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from provision.commands.shared.command_line import command_line
from provision.commands.shared.options import add_site
from provision.commands.shared.outcome import Outcome
from provision.errors import ConfigError
from provision.machine.console import say
from provision.machine.shell import absolute

if TYPE_CHECKING:
    from provision.profile.site import Site


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that name the data and the site."""
    parser.add_argument("source", metavar="PATH", help="a folder or a file")
    parser.add_argument("--name", help="name of the copy at the site (default: the name of PATH)")
    add_site(parser)


def run(args: argparse.Namespace) -> Outcome:
    """Measure the source and write the script."""
    from provision.machine import shipped
    from provision.machine.data_source import measure, sees
    from provision.machine.render import render
    from provision.profile.patterns import NAME

    site = shipped.load_site(args.site)
    path = absolute(args.source)
    name = args.name or PurePosixPath(path).name
    if not NAME.fullmatch(name):
        raise ConfigError(
            f"{name!r} cannot be the name of a data set", hint="`--name NAME`: letters, digits and `_.+-`"
        )
    if site.files.scratch is None:
        raise ConfigError(
            f"site `{site.name}` has no scratch to copy data to",
            evidence=[f"`files.scratch` in `{site.origin}` is missing"],
            hint=f"let jobs read the data in place (`--data {shlex.quote(path)}`), or set `files.scratch`",
        )
    source = measure(path)
    host = None if sees(site.files.scratch) else _host(site)
    what = f"{source.bytes / 1e6:.1f} MB in {source.files} file{'s' * (source.files != 1)} and folders"
    text = render(
        "jobs/data.sh.j2",
        site=site,
        scratch=site.files.scratch,
        host=host,
        # With a slash after a folder, rsync copies its content; we choose the name.
        source=f"{path}/" if source.is_folder else path,
        name=name,
        command=command_line(args),
        kilobytes=-(-source.bytes // 1024),
        files=source.files,
        what=what,
    )
    say(f"note: {what}; nothing is copied yet; to copy, run the script: `provision data push … | bash`")
    result = {"source": path, "bytes": source.bytes, "files": source.files, "host": host, "script": text}
    return Outcome(text=text, result=result)


def _host(site: Site) -> str:
    if site.network.host is None:
        raise ConfigError(
            f"this machine does not see the scratch of site `{site.name}`, and the profile does not say how to reach it",
            evidence=[f"`files.scratch` is `{site.files.scratch}`", f"`network.host` in `{site.origin}` is missing"],
            hint="run this on a login node of the site, or set `network.host` to the name of one",
        )
    return site.network.host
