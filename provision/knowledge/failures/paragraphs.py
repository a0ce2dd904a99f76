"""Messages that a program breaks into several lines, to the width of a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from provision.knowledge.failures.lines import read_line

# How the messages begin. Sources: Lmod's `LmodError`, CMake's `message(FATAL_ERROR)`.
HEADS = ("Lmod has detected the following error:", "CMake Error at ", "CMake Error: ")
# A message has at most so many lines.
MOST_LINES = 8


def begins_paragraph(raw: str) -> bool:
    """Whether a line begins a message that continues in the next lines."""
    return any(head in raw for head in HEADS) and read_line(0, raw).text.lstrip().startswith(HEADS)


def join_paragraph(raw: str, following: Iterable[str]) -> tuple[str, int]:
    """A message in one line, and how many of the following lines it took: those of its rank before the next empty one."""
    head, parts = read_line(0, raw), [raw]
    for more in following:
        line = read_line(0, more)
        text = line.text.strip()
        ends = not text or text.startswith(("-- ", "---", *HEADS))
        if ends or line.rank != head.rank or len(parts) > MOST_LINES:
            break
        parts.append(text)
    return " ".join(parts), len(parts) - 1
