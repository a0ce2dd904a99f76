"""Read a log of any length in blocks of whole lines, with memory for one block: text, UTF-16, or compressed."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from provision.machine.files.disk import unreadable

BLOCK = 1 << 20
# How a compressed file begins, and what reads it.
COMPRESSED = ((b"\x1f\x8b", gzip.open), (b"BZh", bz2.open), (b"\xfd7zXZ\0", lzma.open))
BYTE_ORDERS = ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
# What a damaged compressed file raises; what was read before is a log too.
DAMAGED = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)


def given_blocks(name: str) -> Iterator[bytes]:
    """The text of a log that the user named, or of stdin (`-`), in blocks of whole lines, as UTF-8.

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


def log_blocks(path: Path) -> Iterator[bytes]:
    """The text of a log in blocks of whole lines, as UTF-8. Raises `OSError` if it cannot be read."""
    with path.open("rb") as file:
        yield from whole_lines(file)


def whole_lines(file: BinaryIO) -> Iterator[bytes]:
    """The text of a file in blocks that end at the end of a line, or after a megabyte without one."""
    rest = b""
    for block in _as_utf8(_uncompressed(file)):
        rest += block
        end = rest.rfind(b"\n") + 1 or (len(rest) if len(rest) > BLOCK else 0)
        if end:
            yield rest[:end]
        rest = rest[end:]
    if rest:
        yield rest


def _uncompressed(file: BinaryIO) -> Iterator[bytes]:
    """The blocks of a file, uncompressed. The end of a damaged one is left out."""
    start = file.read(8)
    opener = next((opener for magic, opener in COMPRESSED if start.startswith(magic)), None)
    source = cast(BinaryIO, _Joined(start, file))
    reader = opener(source) if opener else source
    while True:
        try:
            block = reader.read(BLOCK)
        except DAMAGED:
            return
        if not block:
            return
        yield block


class _Joined(io.RawIOBase):
    """A file whose first bytes were read already; it need not be able to seek."""

    def __init__(self, start: bytes, file: BinaryIO) -> None:
        self._start, self._file = start, file

    def readable(self) -> bool:
        """Whether it can be read."""
        return True

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        if not self._start:
            return self._file.read(size)
        size = len(self._start) if size < 0 else size
        start, self._start = self._start[:size], self._start[size:]
        return start


def _as_utf8(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The blocks of a text, as UTF-8: UTF-16 is recognised by its byte order mark, or by every second byte being zero."""
    first = next(blocks, b"")
    encoding = next((name for mark, name in BYTE_ORDERS if first.startswith(mark)), None) or _without_mark(first[:4096])
    if encoding is None:
        yield first.removeprefix(codecs.BOM_UTF8)
        yield from blocks
        return
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    yield decoder.decode(first).removeprefix("\ufeff").encode("utf-8", "replace")
    for block in blocks:
        yield decoder.decode(block).encode("utf-8", "replace")


def _without_mark(sample: bytes) -> str | None:
    """The encoding of a text whose every second byte is zero, as of UTF-16 in Latin letters."""
    if len(sample) < 8:
        return None
    for name, odd, even in (("utf-16-le", sample[1::2], sample[::2]), ("utf-16-be", sample[::2], sample[1::2])):
        if odd.count(0) > 0.9 * len(odd) and even.count(0) < 0.1 * len(even):
            return name
    return None
