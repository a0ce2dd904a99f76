"""`provision data push SOURCE`: a script that copies a data set to the site's scratch, on stdout.

The verb writes a script instead of copying: a copy can take hours, so the user runs it in a terminal, where rsync continues
an interrupted copy and ssh asks for passwords. The script checks the free space first, and renames the complete copy.
"""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from provision.commands.shared.command_line import command_line
from provision.commands.shared.options import add_site
from provision.commands.shared.outcome import Outcome
from provision.errors import ConfigError
from provision.machine.console import say

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
    from provision.machine.render import render
    from provision.profile.patterns import NAME

    site = shipped.load_site(args.site)
    source = Path(os.path.abspath(args.source))
    name = args.name or source.name
    if not NAME.fullmatch(name):
        raise ConfigError(
            f"{name!r} cannot be the name of a data set", hint="`--name NAME`: letters, digits and `_.+-`"
        )
    if site.files.scratch is None:
        raise ConfigError(
            f"site `{site.name}` has no scratch to copy data to",
            evidence=[f"`files.scratch` in `{site.origin}` is missing"],
            hint=f"let jobs read the data in place (`--data {shlex.quote(str(source))}`), or set `files.scratch`",
        )
    size, files = measure(source)
    host = None if is_here(site) else _host(site)
    what = f"{size / 1e6:.1f} MB in {files} file{'s' * (files != 1)} and folders"
    text = render(
        "jobs/data.sh.j2",
        site=site,
        scratch=site.files.scratch,
        host=host,
        # With a slash after a folder, rsync copies its content; we choose the name.
        source=f"{source}/" if source.is_dir() else str(source),
        name=name,
        command=command_line(args),
        kilobytes=-(-size // 1024),
        files=files,
        what=what,
    )
    say(f"note: {what}; nothing is copied yet; to copy, run the script: `provision data push … | bash`")
    result = {"source": str(source), "bytes": size, "files": files, "host": host, "script": text}
    return Outcome(text=text, result=result)


def measure(source: Path) -> tuple[int, int]:
    """Bytes of a source and its files and folders, links not followed; each rounded up to blocks of 4096 as disks do.

    Raises:
        ConfigError: it does not exist, is empty, or cannot be read.
    """
    wrong: list[str] = []
    paths = [source] if source.is_file() else []
    for folder, folders, names in () if paths else os.walk(source, onerror=lambda error: wrong.append(str(error))):
        paths += [Path(folder, one) for one in (*folders, *names)]
    size = 0
    for path in paths:
        try:
            size += -(-path.lstat().st_size // 4096) * 4096
        except OSError as error:
            wrong.append(str(error))
    if wrong or not paths:
        raise ConfigError(
            f"the data `{source}` cannot be read" if wrong else f"there is nothing in `{source}`",
            evidence=wrong[:6],
            hint=f"`ls -l {shlex.quote(str(source))}`",
        )
    return size, len(paths)


def is_here(site: Site) -> bool:
    """Whether this machine sees the site's scratch: its variables are set and the folder that contains it exists."""
    path = os.path.expandvars(site.files.scratch or "$")
    return "$" not in path and Path(path).parent.is_dir()


def _host(site: Site) -> str:
    if site.network.host is None:
        raise ConfigError(
            f"this machine does not see the scratch of site `{site.name}`, and the profile does not say how to reach it",
            evidence=[f"`files.scratch` is `{site.files.scratch}`", f"`network.host` in `{site.origin}` is missing"],
            hint="run this on a login node of the site, or set `network.host` to the name of one",
        )
    return site.network.host
