"""Packages that pip did not find in one attempt and installed in a later one, as a script does with a second index."""

from __future__ import annotations

import re

INSTALLED = "Successfully installed "
MISSED = re.compile(
    r"\W{0,4}ERROR: (?:Could not find a version that satisfies the requirement|No matching distribution found for) "
    r"(?P<name>[\w.-]{1,80})"
)
# A package with its version, as `torch-geometric-2.6.1`.
PACKAGE = re.compile(r"(?P<name>[\w.-]{1,80})-\d[\w.!+]{0,40}")
SEPARATORS = re.compile(r"[-_.]+")


def installed_by_pip(text: str) -> frozenset[str]:
    """The packages that a line of pip says it has installed."""
    if not text.lstrip().startswith(INSTALLED):
        return frozenset()
    found = map(PACKAGE.fullmatch, text.split())
    return frozenset(_plain(package["name"]) for package in found if package)


def requirement(text: str) -> str:
    """The package that a line of pip says it has not found; empty if it says nothing of the kind."""
    found = MISSED.match(text)
    return _plain(found["name"]) if found else ""


def _plain(name: str) -> str:
    """The name of a package as an index compares it."""
    return SEPARATORS.sub("-", name).lower()
