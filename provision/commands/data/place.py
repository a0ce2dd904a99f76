"""Where data go at a site, or come from: a folder of the profile, and the host through which this machine reaches it."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from provision.commands.shared.typos import refuse_unused
from provision.errors import ConfigError
from provision.machine.network.data_files import sees
from provision.profile.files import USER
from provision.profile.network import HOST
from provision.profile.patterns import CONTROL, NAME, show_controls
from provision.profile.site import Site


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
