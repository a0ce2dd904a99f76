"""Exceptions that followed from each other: which of them says what happened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from provision.knowledge.failures.report_forms import follows
from provision.knowledge.failures.tracebacks import Traceback

# An exception of these classes that a program handles is often of a package that it can do without.
IMPORT_ERRORS = frozenset(("ModuleNotFoundError", "ImportError"))
# What the system says to a program: no exception that passes on another one has such a number.
OF_SYSTEM = "[Errno "
# The traceback that is the message of an exception begins at most so many lines below it, as below a line of dashes.
TITLE = 3


def tried_imports(found: Iterable[Traceback]) -> set[int]:
    """The lines of exceptions of imports that a program handled, as it does when it tries another module."""
    handled = (one.after for one in found if one.after and one.handled)
    return {after.number for after in handled if after.exception in IMPORT_ERRORS}


def given_up(found: Iterable[Traceback]) -> set[int]:
    """The lines of exceptions that a program handled before the system refused what it then tried: this refusal ended it."""
    refused = (one for one in found if one.handled and OF_SYSTEM in one.text)
    return {before.number for one in refused for before in _before(one)}


def wrappers(found: Iterable[Traceback]) -> set[int]:
    """The lines of exceptions that say no more than that something failed: those that they followed from say what."""
    return {one.number for one in found if one.after and one.after.text and follows(one.text)}


def carriers(found: Iterable[Traceback]) -> set[int]:
    """The lines of exceptions whose message is the traceback of another process: the exception at its end says what happened."""
    found = sorted(found, key=lambda one: one.number)
    return {
        one.number
        for one, following in pairwise(found)
        if one.text.rstrip().endswith(":") and 0 < following.start - one.number <= TITLE
    }


def causes(found: Iterable[Traceback]) -> set[int]:
    """The lines of exceptions from which others followed, which say more.

    If the log ends before the message of the last exception, the one that it followed from says most.
    """
    found = list(found)
    wrapped = wrappers(found)
    return {one.after.number for one in found if one.after and not one.is_cut and one.number not in wrapped}


def _before(one: Traceback) -> Iterator[Traceback]:
    """The exceptions from which this one followed."""
    while one.after:
        one = one.after
        yield one
