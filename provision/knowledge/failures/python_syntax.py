"""Which Python understands a line of a program: an old one calls newer syntax an error, and Python 3 that of Python 2."""

from __future__ import annotations

import re
from collections.abc import Iterable

# Syntax that came with a version of Python; an older one stops at it. Source: "What's New in Python", 3.0 to 3.14.
_NEWER: tuple[tuple[tuple[int, int], tuple[str, ...]], ...] = (
    ((3, 14), (r"(?<![\w'\"])[rR]?[tT][rR]?['\"]",)),
    (
        (3, 12),
        (
            r"^type \w+(?:\[.*\])? ?=",
            r"^(?:async )?(?:def|class) \w+\[",
            r"[fF](['\"])(?:(?!\1).)*\{(?:(?!\1|\}).)*\1(?:(?!\1).)+\1[^}]*\}",
        ),
    ),
    ((3, 11), (r"^except ?\*",)),
    ((3, 10), (r"^(?:match|case)\b(?! ?[=.,)]).*:$",)),
    ((3, 8), (r"(?<![\w:]):=", r"^(?:async )?def .*[(,] ?/ ?[,)]", r"\{\w+=\}")),
    (
        (3, 6),
        (
            r"(?<![\w'\"])(?:[rR]?[fF]|[fF][rR])(?:'|\")",
            r"^(?!else\b|try\b|finally\b)(?:self\.)?\w+ ?: ?[A-Za-z_][\w.]*(?:\[.*\])?(?: ?=[^=]|$)",
            r"\b\d+_\d",
        ),
    ),
    ((3, 5), (r"^async (?:def|with|for)\b", r"\bawait \w", r"\{\*\*\w", r"[\[(]\*\w+, ?\*")),
    ((3, 3), (r"\byield from\b",)),
    (
        (3, 0),
        (
            r"^(?:async )?def .*->",
            r"^(?:async )?def \w+\(.*\w ?: ?\w",
            r"^(?:async )?def .*[(,] ?\*, ",
            r"^nonlocal \w",
            r"^raise .* from \w",
            r"\bprint\(.*\b(?:end|file|sep|flush) ?=",
            r"^\*\w+, ?\w+ ?=",
            r"^class .*\bmetaclass ?=",
        ),
    ),
)
# Syntax of Python 2 that Python 3 refuses, and names that Python 3.7 took for itself.
_OLDER = re.compile(
    r"^print(?: +[^\s(=.\[,)]| ?>>)|^exec +[^\s(=.]|^except .*[\w)], ?\w+ ?:|^raise [\w.]+, |<>|`\w|"
    r"(?<![\w.])0\d+\b(?!\.)|(?<![\w.])\d+[lL]\b|(?<![\w'\"])[uU][rR]['\"]|\blambda ?\(\w+,|^def \w+\(.*[(,] ?\(\w+,"
)
_NAMES_TAKEN = re.compile(r"\basync ?=(?!=)|\.async\b|\bimport async\b|\basync\.\w|\bas async\b|\basync,")
# The version in the folder of an interpreter: `/lib/python3.5/`, `Python35\`, `python-3.8.1`.
_VERSION = re.compile(r"[Pp]ython[-_]?(?:([23])\.(\d{1,2})|([23])(\d{1,2}))(?=[\w.-]{0,80}[/\\])")
# How Python 2 and each version up to 3.9 call all syntax that they do not know; newer ones say more.
_PLAIN = re.compile(
    r"invalid syntax(?! in|\. )|invalid (?:token|decimal literal)|leading zeros in decimal integer|f-string: "
)

Version = tuple[int, int]


def interpreter(files: Iterable[str]) -> Version | None:
    """The version of the Python that runs, if the folder of one of its files says it."""
    for file in files:
        if found := _VERSION.search(file):
            major, minor = (found[1], found[2]) if found[1] else (found[3], found[4])
            return int(major), int(minor)
    return None


def needs_newer(code: str, message: str, runs: Version | None) -> Version | None:
    """The first version of Python that understands a line that was called wrong; None if a newer one need not help."""
    if "backslash" in message and "f-string" in message:
        return 3, 12
    if found := re.match(r"future feature (\w+) is not defined", message):
        return (3, 7) if found[1] == "annotations" else None
    if not _PLAIN.match(message):
        return None
    line = code.strip()
    fits = (version for version, patterns in _NEWER if any(re.search(pattern, line) for pattern in patterns))
    return next((version for version in fits if runs is None or runs < version), None)


def is_for_older(code: str, message: str, runs: Version | None) -> str | None:
    """The Python that a line was written for, if it is older than the one that runs: `Python 2`, `Python 3.6 or older`."""
    if runs is not None and runs < (3, 0):
        return None
    if message.startswith(("Missing parentheses in call to", "multiple exception types must be")):
        return "Python 2"
    if not _PLAIN.match(message):
        return None
    if _NAMES_TAKEN.search(code) and (runs is None or runs >= (3, 7)):
        return "Python 3.6 or older"
    return "Python 2" if _OLDER.search(code.strip()) else None
