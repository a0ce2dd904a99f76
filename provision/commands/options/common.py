"""The options that several verbs have: one spelling and one help text for each."""

from __future__ import annotations

import argparse

from provision.commands.options.declare import Option, option
from provision.knowledge.whole_numbers import whole_number
from provision.machine.programs.shell import default_site
from provision.profile.choices import BACKENDS

LARGEST = 1_000_000


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


def sizes(text: str) -> tuple[int, ...]:
    """Whole numbers from 1 on, with commas: smallest first.

    Raises:
        argparse.ArgumentTypeError: one is not a whole number from 1 on, or is there twice.
    """
    numbers = sorted(positive(one) for one in text.split(","))
    twice = next((one for one in numbers if numbers.count(one) > 1), None)
    if twice is not None:
        raise argparse.ArgumentTypeError(f"`{text}` has {twice} twice")
    return tuple(numbers)


def whole(text: str) -> int:
    """A whole number from 0 to a million.

    Raises:
        argparse.ArgumentTypeError: it is not.
    """
    return 0 if text.strip() == "0" else positive(text)


def arch(omitted: str) -> Option:
    """The option that names a kind of node of the site; `omitted` describes what happens without it."""
    return option("--arch ARCH", f"an arch (kind of node) of the site; {omitted}")


def account(when: str = "") -> Option:
    """The option that names the account of a job; `when` it is used."""
    return option("--account ACCOUNT", f"{when}account (allocation) to charge; default: the profile's")


SITE = option(
    "--site SITE",
    "a site of `provision site list`, or the path of a profile (default: $PROVISION_SITE, or else local)",
    default=default_site,
)
STACK = option("--stack STACK", "a stack of `provision stack list` (default: the arch's, or else the site's)")
TARGET = (SITE, arch("needed if the site has several"), STACK)
BACKEND = option("--backend", "what makes the environment (default: the stack's)", choices=BACKENDS)
PROFILE = option("--profile", "use only the profile, without looking at this machine")
DRY_RUN = option("--dry-run", "only show what would change")
ENVIRONMENT, ANY_ENVIRONMENT = (
    option(spelling, "an environment of `provision list`: its name, the beginning of its fingerprint, or its module")
    for spelling in ("ENVIRONMENT", "[ENVIRONMENT]")
)
QUEUE = (option("--time HH:MM:SS", "time limit of the job"), option("--queue QUEUE", "partition, queue or QOS"))
