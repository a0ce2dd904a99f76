"""`provision data push SOURCE`: a script that copies a data set to a folder of the site, on stdout.

The verb writes a script instead of copying: a copy can take hours, so the user runs it in a terminal, where rsync continues
an interrupted copy and ssh asks for passwords. The script checks the free space first, and renames the complete copy.
"""

from __future__ import annotations

import argparse
from pathlib import PurePosixPath

from provision.commands.data.place import choose_place, refuse_controls
from provision.commands.shared.outcome import Outcome
from provision.commands.shared.parsers import command_line
from provision.errors import ConfigError
from provision.machine.configuration import shipped
from provision.machine.network.data_files import measure
from provision.machine.programs.shell import absolute
from provision.machine.rendering.render import render
from provision.machine.terminal.console import say
from provision.profile.patterns import NAME
from provision.wording import count


def run(args: argparse.Namespace) -> Outcome:
    """Measure the source and write the script."""
    site = shipped.load_site(args.site)
    refuse_controls(args.source)
    path = absolute(args.source)
    name = args.name or PurePosixPath(path).name
    if not NAME.fullmatch(name):
        raise ConfigError(
            f"{name!r} cannot be the name of a data set", hint="`--name NAME`: letters, digits and `_.+-`"
        )
    place = choose_place(args, site)
    source = measure(path)
    what = f"{source.bytes / 1e6:.1f} MB in {count(source.files, 'file or folder', 'files and folders')}"
    text = render(
        "jobs/data-push.sh.j2",
        purpose=f"Copy data to {site.title or site.name}: {what}.",
        base=place.folder,
        host=place.host,
        source=path,
        folder=source.is_folder,
        name=name,
        command=command_line(args),
        kilobytes=-(-source.bytes // 1024),
        files=source.files,
    )
    way = f"by ssh to `{place.host}`" if place.host else "on this machine"
    say(f"note: {what}, {way}; nothing is copied yet; to copy, run the script: `provision data push … | bash`")
    result = {"source": path, "bytes": source.bytes, "files": source.files, "host": place.host, "script": text}
    return Outcome(text=text, result=result)
