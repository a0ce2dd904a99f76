"""`provision data push` and `data pull`: scripts on stdout that copy a data set to a folder of a site, or results from it.

The verbs write a script instead of copying: a copy can take hours, so the user runs it in a terminal, where rsync continues an
interrupted copy and ssh asks for passwords. The script of `push` checks the free space first, and renames the complete copy.
Sites empty their scratch file systems, so what a job left there has to be pulled.
"""

from __future__ import annotations

import argparse
import posixpath
import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from provision.commands.shared.outcome import Outcome
from provision.commands.shared.parsers import command_line
from provision.commands.shared.typos import refuse_unused
from provision.errors import ConfigError
from provision.machine.configuration import shipped
from provision.machine.network.data_files import measure, sees
from provision.machine.programs.shell import absolute
from provision.machine.rendering.render import render
from provision.machine.terminal.console import say
from provision.profile.files import USER
from provision.profile.network import HOST
from provision.profile.patterns import CONTROL, NAME, show_controls
from provision.profile.site import Site
from provision.wording import count

# rsync expands these in a path that it reads at the site.
PATTERN = re.compile(r"[*?\[\]\\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class RemotePlace:
    """A folder of a site, which a shell there expands, and the host for ssh; None if this machine sees the folder."""

    folder: str
    host: str | None


def refuse_controls(*texts: str | None) -> None:
    """Refuse control characters, such as line breaks, in paths and names.

    Raises:
        ConfigError: a text has one.
    """
    for text in texts:
        if text is not None and CONTROL.search(text):
            raise ConfigError(
                f"`{show_controls(text)}` contains a line break or another control character",
                hint="rename it, or copy the folder that contains it",
            )


def choose_place(args: argparse.Namespace, site: Site) -> RemotePlace:
    """The place that these options name.

    Raises:
        ConfigError: the profile has no such folder, an option would not be used, or the site cannot be reached.
    """
    for option, value, form in (
        ("--user", args.user, USER),
        ("--host", args.host, HOST),
        ("--project", args.project, NAME),
    ):
        if value is not None and not form.fullmatch(value):
            raise ConfigError(f"{value!r} is not a valid value of `{option}`", hint="letters, digits and `_.-`")
    folders = {"scratch": site.files.scratch, "project": site.files.project, "home": "$HOME"}
    name = args.place or ("project" if site.files.scratch is None and site.files.project else "scratch")
    folder = folders[name]
    if folder is None:
        others = ", ".join(f"`{key}`" for key, value in folders.items() if value)
        raise ConfigError(
            f"the profile of site `{site.name}` has no {name} folder",
            evidence=[f"`files.{name}` in `{site.origin}` is missing"],
            hint=f"set `files.{name}`, or choose another folder of the site with `--to` or `--in`: {others}",
        )
    if "$PROJECT" not in folder:
        refuse_unused(args, f"the path `{folder}` contains no name of a project", "--project")
    elif args.project is None:
        raise ConfigError(
            f"the project folder of site `{site.name}` needs the name of a project",
            evidence=[f"`files.project` in `{site.origin}` is `{folder}`"],
            hint="`--project NAME`",
        )
    project = args.project or "any"
    seen = any(sees(path.replace("$PROJECT", project)) for path in (site.files.scratch, site.files.project) if path)
    if seen and args.host is None:
        refuse_unused(args, "this machine sees the files of the site; for a copy by ssh add `--host`", "--user")
    return RemotePlace(
        folder=folder.replace("$PROJECT", project),
        host=None if seen and args.host is None else _host(args, site, folder),
    )


def _host(args: argparse.Namespace, site: Site, folder: str) -> str:
    host = args.host or site.network.data_host or site.network.host
    if host is None:
        raise ConfigError(
            f"this machine does not see `{folder}` of site `{site.name}`, and the profile names no host to reach it",
            evidence=[f"`network.host` and `network.data_host` in `{site.origin}` are missing"],
            hint="add `--host` with the name of a login node of the site, or run this on one",
        )
    return f"{args.user}@{host}" if args.user else host


def run_push(args: argparse.Namespace) -> Outcome:
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


def run_pull(args: argparse.Namespace) -> Outcome:
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
