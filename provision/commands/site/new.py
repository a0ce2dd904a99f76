"""`provision site new`: write your own profile, filling the blanks of one from this machine, `--set` and your answers."""

from __future__ import annotations

import argparse
import shlex
from typing import TYPE_CHECKING

from provision.commands.shared.outcome import Outcome
from provision.errors import ConfigError
from provision.machine.terminal.console import ask, can_ask, say

if TYPE_CHECKING:
    from provision.profile.blanks import Blank


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that name the profile and the known values."""
    parser.add_argument(
        "name",
        metavar="NAME",
        help="name of the new site: sites/NAME.toml below $PROVISION_CONFIG, or else below ~/.config/provision",
    )
    parser.add_argument(
        "--from",
        dest="source",
        metavar="SITE",
        default="generic-slurm",
        help="the profile to fill in (default: generic-slurm)",
    )
    parser.add_argument(
        "--arch",
        action="append",
        metavar="ARCH",
        help="keep this arch of the profile and leave out the others; can be repeated",
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="the value of a blank; can be repeated"
    )


def run(args: argparse.Namespace) -> Outcome:
    """Fill in the known values, ask for the others on a terminal, write the file, and list what is left."""
    from provision.machine.configuration import shipped
    from provision.machine.disk import exists, read_given, write
    from provision.machine.probes.login_node import path_of_new_profile, values_here
    from provision.profile.blanks import blanks, fill, keep_archs
    from provision.profile.patterns import NAME
    from provision.profile.site import read_site

    if not NAME.fullmatch(args.name):
        raise ConfigError(f"`{args.name}` cannot be the name of a site: use letters, digits and `_.+-`")
    data, source = shipped.load_profile(args.source)
    text = read_given(str(source), "profile")
    if args.arch:
        text = keep_archs(text, args.arch)
        data = shipped.parse(text, str(source))
    path = path_of_new_profile(args.name)
    if exists(str(path)):
        raise ConfigError(f"`{path}` already exists", hint=f"edit it, or remove it: `rm {shlex.quote(str(path))}`")
    asked = blanks(text, data)
    answers = dict(_typed(setting) for setting in args.set)
    fill(text, args.name, asked, answers)  # refuse a wrong key before asking anything
    suggested = {
        key: value for key, value in values_here([blank.path for blank in asked]).items() if key not in answers
    }
    if can_ask() and not args.json:
        for blank in asked:
            if blank.path not in answers:
                answer = _ask(blank, suggested.get(blank.path))
                if answer:
                    answers[blank.path] = answer
    else:
        answers |= suggested
    left = [blank for blank in asked if blank.path not in answers]
    filled = fill(text, args.name, asked, answers)
    if not left:
        try:
            read_site(shipped.parse(filled, str(path)), str(path), shipped.environment(), args.name)
        except ConfigError as error:
            again = "nothing was written; run the same command again, with `--set KEY=VALUE` for the wrong value"
            raise ConfigError(error.message, evidence=error.evidence, hint=again) from error
    write(path, filled)
    lines = [
        f"written: {path}",
        *(f"  from this machine: {key} = {value}" for key, value in suggested.items() if key in answers),
    ]
    if left:
        lines += [f"{len(left)} values are still to be filled in before a build:"]
        lines += [f'  {blank.path} = "?"' + (f"  # {blank.question}" if blank.question else "") for blank in left]
    lines.append(f"next: {'fill them in, then ' if left else ''}`provision doctor --site {args.name}`")
    return Outcome(
        text="\n".join(lines), result={"file": str(path), "filled": answers, "left": [blank.path for blank in left]}
    )


def _typed(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not key or not value.strip():
        raise ConfigError(f"`--set {text}` is not KEY=VALUE", hint="`--set archs.gpu.target=zen3`")
    return key, value.strip()


def _ask(blank: Blank, seen: str | None) -> str:
    """The answer at the terminal; an empty answer means the value of this machine, or leaves the blank."""
    if blank.question:
        say(f"# {blank.question}")
    return ask(f"{blank.path}{f' [{seen}]' if seen else ''}: ") or seen or ""
