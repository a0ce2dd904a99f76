"""Where a program crashed: the library in the list of calls that its runtime prints below the signal."""

from __future__ import annotations

import re
from collections.abc import Iterable

from provision.knowledge.failures.lines import read_line

# How the lines of such lists name a library and a function. Sources: glibc's `backtrace_symbols`, as Open MPI and UCX print it;
# gdb's `bt`.
FRAMES = (
    # Intel's Fortran cuts the names of libraries.
    re.compile(
        r"(?P<library>lib(?!pthread|c[-.]|m[-.]|ifcore|intlc)[\w+.-]{2,20}) +[0-9A-Fa-f]{16} +(?P<function>(?!Unknown)\w{1,120}|)"
    ),
    re.compile(
        r"^\s*\d{1,2} 0x[0-9a-f]{6,16} (?!_|gsignal|abort|raise|ucs_)(?P<function>\w{1,120})\(\) +(?P<library>)"
    ),
    re.compile(
        r"(?:^|[\s/])(?P<library>lib[\w+.-]{1,80}?\.so[\w.]{0,20})\((?P<function>\w{0,120})(?:\+0x[0-9a-f]+)?\)"
    ),
    re.compile(
        r"#\d+ .{0,60}\bin (?P<function>[\w:~<>]{1,120}) \(.{0,300}\) from "
        r"\S{0,300}?(?P<library>lib[\w+.-]{1,80}?\.so[\w.]{0,20})"
    ),
)
# What calls the handler of the signal, or belongs to the language: the library below it is the one that crashed.
OF_SYSTEM = re.compile(
    r"lib(?:c|m|pthread|dl|gcc_s|stdc\+\+|ucs|SegFault|asan|python[\d.]*\w*|gfortran|quadmath)(?:-[\w.]+?)?\.so"
)
# So many lines below the signal are looked at; a list ends with so many lines that are none of it.
MOST_LINES, MOST_OTHERS = 32, 6


def _readable(function: str) -> str:
    """The name of a function; of one of C++ the parts of its mangled name, as `Eigen::Pool` of `_ZN5Eigen4PoolE`."""
    mangled = re.match(r"_ZN?K?(?=\d)", function)
    parts, at = [], mangled.end() if mangled else len(function)
    while found := re.compile(r"\d{1,3}").match(function, at):
        at = found.end() + int(found[0])
        parts.append(function[found.end() : at])
    return "::".join(parts[:3]) or function


def crash_place(below: Iterable[str]) -> str:
    """The first library in the list of calls below a signal, and its function if it has a name; else nothing."""
    first = ""
    others = 0
    for place, raw in enumerate(below):
        text = read_line(0, raw).text
        found = next((match for form in FRAMES if (match := form.search(text))), None)
        if found is None:
            others += 1
            if others > MOST_OTHERS or place > MOST_LINES:
                break
            continue
        others = 0
        if not found["library"]:
            return first or f"{_readable(found['function'])}()"
        if OF_SYSTEM.match(found["library"]):
            continue
        if first and not first.startswith(found["library"]):
            break
        if found["function"]:
            return f"{found['library']}, {_readable(found['function'])}()"
        first = first or found["library"]
    return first
