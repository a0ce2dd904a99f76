"""Find the logs that a user means, and read a log of any length, with memory for one block; it may be compressed."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import re
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from provision.machine.files.disk import unreadable

BLOCK = 1 << 20
# How a compressed file begins, and what reads it.
COMPRESSED = ((b"\x1f\x8b", gzip.open), (b"BZh", bz2.open), (b"\xfd7zXZ\0", lzma.open))
# What a damaged compressed file raises; what was read before is a log too.
DAMAGED = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)

# Names of logs: of programs, of Slurm and Cobalt (`.out`, `.error`), of PBS and SGE (`train.o123`), and compressed ones.
LOG_NAME = re.compile(
    r"(?:\.(?:log|out|err|output|error|stdout|stderr|txt)|\.[oe]\d+(?:[.-]\d+)?)(?:\.(?:gz|bz2|xz))?$"
)
# Of a folder with more logs, the newest are read.
MOST_LOGS = 30


def given_blocks(name: str) -> Iterator[bytes]:
    """The text of a log that the user named, or of stdin (`-`), in blocks of whole lines.

    Raises:
        ConfigError: the log does not exist, cannot be read, or is a folder.
    """
    try:
        if name == "-":
            yield from whole_lines(cast(io.BufferedReader, sys.stdin.buffer))
        else:
            with Path(name).open("rb") as file:
                yield from whole_lines(file)
    except OSError as error:
        raise unreadable(name, "log", error, stdin=name == "-") from error


def whole_lines(file: io.BufferedReader) -> Iterator[bytes]:
    """The text of a file in blocks that end at the end of a line, or after a megabyte without one."""
    rest = b""
    for block in _uncompressed(file):
        rest += block
        end = rest.rfind(b"\n") + 1 or (len(rest) if len(rest) > BLOCK else 0)
        if end:
            yield rest[:end]
        rest = rest[end:]
    if rest:
        yield rest


def _uncompressed(file: io.BufferedReader) -> Iterator[bytes]:
    """The blocks of a file, uncompressed. The end of a damaged one is left out."""
    start = file.peek(8)
    opener = next((opener for magic, opener in COMPRESSED if start.startswith(magic)), None)
    reader = opener(file) if opener else file
    while True:
        try:
            block = reader.read(BLOCK)
        except DAMAGED:
            return
        if not block:
            return
        yield block


def logs_in(folder: Path, containing: str = "") -> list[Path]:
    """The logs in a folder and in the folders directly below it, the newest first.

    A file stands for itself. `containing` is a text that the name must contain as a whole number: the ID of a job.
    """
    if not folder.is_dir():
        return [folder]
    name = re.compile(rf"(?<!\d){re.escape(containing)}(?!\d)")
    below = [path for path in sorted(folder.iterdir()) if path.is_dir() and not path.is_symlink()]
    found = []
    for place in (folder, *below):
        with contextlib.suppress(PermissionError):
            files = [path for path in sorted(place.iterdir()) if path.is_file()]
            found += [path for path in files if LOG_NAME.search(path.name) and name.search(path.name)]
    return sorted(found, key=lambda path: -path.stat().st_mtime)[:MOST_LOGS]
