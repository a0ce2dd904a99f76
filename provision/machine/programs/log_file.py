"""Read a log of any length in blocks of whole lines, with memory for one block."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from provision.machine.disk import unreadable

BLOCK = 1 << 20


def given_blocks(name: str) -> Iterator[str]:
    """The text of a log that the user named, or of stdin (`-`), in blocks of whole lines.

    Raises:
        ConfigError: the log does not exist, cannot be read, or is a folder.
    """
    try:
        if name == "-":
            yield from whole_lines(sys.stdin.buffer)
        else:
            yield from log_blocks(Path(name))
    except OSError as error:
        raise unreadable(name, "log", error, stdin=name == "-") from error


def log_blocks(path: Path) -> Iterator[str]:
    """The text of a log in blocks of whole lines. Raises `OSError` if it cannot be read."""
    with path.open("rb") as file:
        yield from whole_lines(file)


def whole_lines(file: BinaryIO) -> Iterator[str]:
    """The text of a file in blocks that end at the end of a line, or after a megabyte without one."""
    text, rest = io.TextIOWrapper(file, encoding="utf-8", errors="replace"), ""
    try:
        while block := text.read(BLOCK):
            rest += block
            end = rest.rfind("\n") + 1 or (len(rest) if len(rest) > BLOCK else 0)
            if end:
                yield rest[:end]
            rest = rest[end:]
        yield rest
    finally:
        text.detach()  # otherwise stdin would be closed
