"""Where a program crashed: the library, or the function of the program, in the list of calls that its runtime prints below the
signal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

# How the lines of such lists name a library and a function. Sources: glibc's `backtrace_symbols`, as Open MPI and UCX print it;
# gdb's `bt`.
FRAMES = (
    # Intel's Fortran cuts the names of libraries.
    re.compile(
        r"(?P<library>lib(?!pthread|c[-.]|m[-.]|ifcore|intlc)[\w+.-]{2,20}) +[0-9A-Fa-f]{16} +(?P<function>(?!Unknown)\w{1,120}|)"
    ),
    re.compile(
        r"^\s*\d{1,2} 0x[0-9a-f]{6,16} (?!_|gsignal|abort|raise|killpg|sigaction|ucs_)(?P<function>\w{1,120})\(\) +"
        r"(?:(?P<source>[\w/.~+-]{1,300}:[1-9]\d*)|)"
    ),
    re.compile(
        r"(?:^|[\s/])(?P<library>lib[\w+.-]{1,80}?\.so[\w.]{0,20})\((?P<function>\w{0,120})(?:\+0x[0-9a-f]+)?\)"
    ),
    re.compile(
        r"#\d+ .{0,60}\bin (?P<function>[\w:~<>]{1,120}) \(.{0,300}\) from "
        r"\S{0,300}?(?P<library>lib[\w+.-]{1,80}?\.so[\w.]{0,20})"
    ),
    # Of the program itself; Intel's Fortran prints the routine, the line and the source, and the second form has no place.
    re.compile(
        r"^(?!lib)[\w.+-]{1,40} +[0-9A-Fa-f]{16} +(?P<function>(?!Unknown|main\b|for_)\w{1,120}) +"
        r"(?P<line>\d+) +(?P<source>[\w.+-]{1,100})$"
    ),
    re.compile(
        r"(?:^|\s)(?:\.{0,2}/)?(?:[\w.+-]+/)*(?P<program>(?!lib[\w+.-]*\.so|python|ld-)[\w.+-]{1,100})\((?P<function>(?!_start\b|_Py|Py)[A-Za-z_][\w.]{0,120})"
        r"\+0x[0-9a-f]+\)"
    ),
    # Charm++, and IQ-TREE.
    re.compile(
        r"^\s*\[\d+:\d+\] (?P<program>[\w.+-]{1,60}) 0x[0-9a-f]{4,16} (?P<function>(?!Cmi|Ck|Converse)[A-Za-z][\w:~]{3,120})"
    ),
    re.compile(
        r"^ERROR: {1,4}\d{1,3} {1,9}(?:[\w:<>*&]{1,60} ){0,3}(?P<function>(?!funcAbort)[A-Za-z_][\w:~]{2,120})(?:<.{0,200}>)?\("
    ),
    # gdb as HPE's MPT calls it.
    re.compile(
        r"^(?:\d+:)?MPT: #\d+ +0x[0-9a-f]{4,16} in "
        r"(?P<function>(?!_|raise|abort|shr_abort|mpi_|MPI_|MPT|wait|for_)[a-z]\w{2,120}) \("
    ),
    # gfortran, which puts the place into the next line.
    re.compile(
        r"^#\d+ +0x[0-9a-f]{4,16} in (?:(?P<function>__\w{1,80}_MOD_\w{1,80}|(?!raise|abort)[A-Za-z]\w{0,120})|"
        r"\?\?\?|_\w{1,80}|raise|abort)$"
    ),
    re.compile(
        r"#\d+ .{0,60}?(?P<function>(?!__|raise|abort)[A-Za-z_][\w:~<>]{0,120}) \(.{0,300}\) at (?P<source>[\w/.~+-]{1,300}:\d+)"
    ),
)
# What calls the handler of the signal, or belongs to the language: the library below it is the one that crashed.
OF_SYSTEM = re.compile(
    r"lib(?:c|m|pthread|dl|gcc_s|stdc\+\+|ucs|SegFault|asan|python[\d.]{0,9}\w{0,9}|gfortran|quadmath)(?:-[\w.]{1,60}?)?\.so"
)
# So many lines below the signal are looked at; a list ends with so many lines that are none of it.
MOST_LINES, MOST_OTHERS = 32, 6


def _readable(function: str) -> str:
    """The name of a function; of one of C++ the parts of its mangled name, as `Eigen::Pool` of `_ZN5Eigen4PoolE`.

    gfortran puts a module before its procedures, as in `__solver_MOD_step`.
    """
    if in_module := re.match(r"__(\w+?)_MOD_(\w+)$", function):
        return f"{in_module[1]}::{in_module[2]}"
    mangled = re.match(r"_ZN?K?(St)?(?=\d)", function)
    parts, at = ["std"] if mangled and mangled[1] else [], mangled.end() if mangled else len(function)
    while found := re.compile(r"\d{1,3}").match(function, at):
        at = found.end() + int(found[0])
        parts.append(function[found.end() : at])
    return "::".join(parts[:3]) or function.rstrip("_")  # Fortran adds one


def crash_place(below: Iterable[str]) -> dict[str, str]:
    """Where a program crashed, from the lines below its signal, without the names of ranks; empty if they do not say it.

    The `place` is the first one that is not of the system, in words; `library` is the library, or `program` the program, that it
    is in, if a line names it.
    """
    first: dict[str, str] = {}
    others = 0
    for number, text in enumerate(below):
        found = next((match for form in FRAMES if (match := form.search(text))), None)
        if found is None:
            others += 1
            if others > MOST_OTHERS or number > MOST_LINES:
                break
            continue
        others = 0
        frame = {name: value for name, value in found.groupdict().items() if value}
        if not frame or OF_SYSTEM.match(frame.get("library", "")):
            continue
        if first and first.get("library") != frame.get("library"):
            break
        if "function" in frame:
            return _describe(frame)
        first = first or _describe(frame)
    return first


def _describe(frame: Mapping[str, str]) -> dict[str, str]:
    """The place of a line in words, and what it is in; a function with its place in a source is one of the program."""
    function = f"`{_readable(frame['function'])}()`" if "function" in frame else ""
    if library := frame.get("library"):
        return {"place": f"{function} of `{library}`" if function else f"`{library}`", "library": library}
    if source := frame.get("source"):
        source = f"{source}:{frame['line']}" if "line" in frame else source
        return {"place": f"{function} at `{source}`", "program": source}
    if program := frame.get("program"):
        return {"place": f"{function} of `{program}`", "program": program}
    return {"place": function}


def advice(values: Mapping[str, str]) -> str:
    """What to do about a crash at a place that `crash_place` found, before the hint of the entry; empty without a place."""
    if library := values.get("library"):
        return f"try another version of the package that has `{library}`, or run without what it does; "
    if "program" in values:
        return f"look at {values['place']} in your program; "
    return ""
