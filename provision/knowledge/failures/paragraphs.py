"""Messages that a program breaks into several lines, to the width of a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import takewhile

from provision.knowledge.failures.lines import read_line

# How the messages begin. Sources: Lmod's `LmodError`, OpenFOAM's `error`, CMake's `message(FATAL_ERROR)`, Gradle's
# `BuildExceptionReporter`; the lists of `horovodrun --check-build`.
CMAKE = "CMake Error at "
CMAKE_WARNING = "CMake Warning"
# The compilers of NVIDIA, PGI and others with EDG's front end break the text to 80 columns, and indent it by ten.
EDG = re.compile(r'"[^"]{1,300}", line \d{1,7}: (?:catastrophic |internal )?error: ')
EDG_PLACE, EDG_INDENT = '", line ', re.compile(r" {10}\S")
HEADS = (
    *(
        "Lmod has detected the following error:",
        "--> FOAM FATAL ",
        CMAKE,
        CMAKE_WARNING,
        "CMake Error: ",
        "* What went wrong:",
    ),
    *("Available Frameworks:", "Available Controllers:"),
)
# An error of this tool, and of others such as uv and Git, ends with a hint.
ERROR, HINT = "error: ", "hint: "
# What uv and other programs in Rust print below an error: why each step failed; the last line has the reason.
CAUSED = "Caused by: "
# A message has at most so many lines.
MOST_LINES = 24
# So many empty lines may stand below the first one.
MOST_EMPTY = 2


def begins_paragraph(raw: str) -> bool:
    """Whether a line begins a message that continues in the next lines."""
    if EDG_PLACE in raw and EDG.match(read_line(0, raw).text):
        return True
    return any(head in raw for head in (*HEADS, ERROR)) and read_line(0, raw).text.lstrip().startswith((*HEADS, ERROR))


def join_paragraph(raw: str, following: Iterable[str]) -> tuple[str, int]:
    """A message in one line, and how many of the following lines it took: those of its rank before the next empty one.

    An error is taken with its hint, or alone; the text of one of CMake may stand below empty lines, as in a mail.
    """
    head, parts, empty = read_line(0, raw), [raw], 0
    warning = head.text.lstrip().startswith(CMAKE_WARNING)
    if EDG.match(head.text):
        return _join_indented(raw, following)
    if warning:
        return _join_warning(raw, head.rank, following)
    if head.text.lstrip().startswith(ERROR):
        return _join_error(raw, head.rank, following)
    for more in following:
        line = read_line(0, more)
        text = line.text.strip()
        if not text and len(parts) == 1 and empty < MOST_EMPTY and head.text.lstrip().startswith(CMAKE):
            empty += 1
            continue
        if empty and len(parts) == 1 and not line.text.startswith(" "):
            return raw, 0
        ends = not text or text.startswith(("-- ", "---", *HEADS))
        if ends or line.rank != head.rank or len(parts) > MOST_LINES:
            break
        parts.append(text)
    return (" ".join(parts), len(parts) - 1 + empty) if len(parts) > 1 else (raw, 0)


def _join_warning(raw: str, rank: str, following: Iterable[str]) -> tuple[str, int]:
    """A warning of CMake in one line, and how many lines it took: its text is indented, with empty lines between paragraphs."""
    parts, taken = [raw], 0
    for number, more in enumerate(following, 1):
        line = read_line(0, more)
        text = line.text.strip()
        if text and (not line.text.startswith(" ") or text.startswith(HEADS) or line.rank != rank):
            break
        if text:
            parts.append(text)
            taken = number
        if number > MOST_LINES:
            break
    return " ".join(parts), taken


def _join_indented(raw: str, following: Iterable[str]) -> tuple[str, int]:
    """An error of EDG's front end in one line, and how many lines it took."""
    parts = [raw.rstrip(), *(text.strip() for text in takewhile(EDG_INDENT.match, following))]
    return " ".join(parts), len(parts) - 1


def _join_error(raw: str, rank: str, following: Iterable[str]) -> tuple[str, int]:
    """An error in one line with its causes or its hint, and how many lines it took; no line if it has neither."""
    parts, causes = [raw], 0
    for more in following:
        line = read_line(0, more)
        text = line.text.strip()
        if line.rank != rank or text.startswith((ERROR, *HEADS)):
            break
        parts.append(text)
        if text.startswith(CAUSED) and causes == len(parts) - 2:
            causes += 1
        if text.startswith(HINT):
            return " ".join(part for part in parts if part), len(parts) - 1
    return " ".join(parts[: causes + 1]), causes
