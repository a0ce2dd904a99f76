"""What a form is in which a program reports an error."""

from __future__ import annotations

from dataclasses import dataclass

# How sure a report is the error that ended a program: it says so; it calls itself an error; it only complains, with or without
# its name; it follows from an error elsewhere.
ENDS, ERRS, NAMED, COMPLAINS, FOLLOWS = 4, 3, 2, 1, 0


@dataclass(frozen=True, slots=True)
class Form:
    """One form of a line."""

    strength: int
    pattern: str
    """Its group `text` is the message, which continues in the next line if it is empty or ends with a colon; `program` is who
    prints it, and `place` the place in a source or a script."""
    program: str = ""
    """Who prints it, if the line need not say so."""
    only_system: bool = False
    """Whether the message has to contain a text of the system, such as `Permission denied`."""


# What names a program, and what else stands before the word `error`.
NAME = r"[A-Za-z/~.][\w.+/-]{0,200}"
HEAD = r"\W{0,9}(?:\[[^\]\n]{1,80}\]:? {0,8}){0,3}"
WHERE = r"(?:(?: in| at| on| from| while| when| during) [^:]{1,80})?"


def form(strength: int, pattern: str, program: str = "", *, only_system: bool = False) -> Form:
    """A form of lines."""
    return Form(strength, pattern, program, only_system)
