"""The options that several verbs have: one spelling and one help text for each."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from provision.errors import ConfigError
from provision.knowledge.whole_numbers import whole_number
from provision.machine.programs.shell import default_site
from provision.profile.stack import BACKENDS

LARGEST = 1_000_000
Container = argparse.ArgumentParser | argparse._ArgumentGroup


def add_site(parser: Container) -> None:
    """The option that names the site."""
    parser.add_argument(
        "--site",
        default=default_site(),
        help="a site of `provision site list`, or the path of a profile (default: $PROVISION_SITE, or else local)",
    )


def add_arch(parser: Container, *, omitted: str = "needed if the site has several") -> None:
    """The option that names a kind of node of the site; `omitted` describes what happens without it."""
    parser.add_argument("--arch", help=f"an arch (kind of node) of the site; {omitted}")


def add_stack(parser: Container) -> None:
    """The option that names what to build."""
    parser.add_argument("--stack", help="a stack of `provision stack list` (default: the arch's, or else the site's)")


def add_target(parser: Container) -> None:
    """The options that name what to build: site, arch, stack."""
    add_site(parser)
    add_arch(parser)
    add_stack(parser)


def add_backend(parser: Container) -> None:
    """The option that names what builds it."""
    parser.add_argument("--backend", choices=BACKENDS, help="what makes the environment (default: the stack's)")


def add_account(parser: Container, *, when: str = "") -> None:
    """The option that names the account of a job; `when` it is used."""
    parser.add_argument("--account", help=f"{when}account (allocation) to charge; default: the profile's")


def add_queue(parser: Container) -> None:
    """The options of a job in its queue."""
    parser.add_argument("--time", metavar="HH:MM:SS", help="time limit of the job")
    parser.add_argument("--queue", help="partition, queue or QOS")


def add_environment(parser: Container, *, optional: bool = False) -> None:
    """The argument that names an environment."""
    parser.add_argument(
        "environment",
        metavar="ENVIRONMENT",
        nargs="?" if optional else None,
        help="an environment of `provision list`: its name, the beginning of its fingerprint, or its module",
    )


def positive(text: str) -> int:
    """A whole number from 1 to a million.

    Raises:
        argparse.ArgumentTypeError: it is not.
    """
    number = whole_number(text.strip().removeprefix("-"))
    if number is None:
        raise argparse.ArgumentTypeError(f"`{text}` is not a whole number")
    if number < 1 or text.strip().startswith("-"):
        raise argparse.ArgumentTypeError(f"`{text}` must be at least 1")
    if number > LARGEST:
        raise argparse.ArgumentTypeError(f"`{text}` must be at most {LARGEST}")
    return number


def whole(text: str) -> int:
    """A whole number from 0 to a million.

    Raises:
        argparse.ArgumentTypeError: it is not.
    """
    return 0 if text.strip() == "0" else positive(text)


def refuse_unused(args: argparse.Namespace, options: Sequence[tuple[str, object]], why: str) -> None:
    """Raise for the first of these options that was given: it would be ignored.

    Raises:
        ConfigError: one was given.
    """
    given = [name for name, value in options if value]
    if given:
        raise ConfigError(
            f"`{args.parser.prog}` would not use `{given[0]}` here: {why}", hint=f"leave `{given[0]}` out", kind="usage"
        )
