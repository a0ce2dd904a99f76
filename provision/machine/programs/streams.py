"""Streams that cannot take what we print: an encoding without our marks gets ASCII, and a closed pipe gets nothing."""

from __future__ import annotations

import codecs
import contextlib
import os
import sys
from typing import TextIO

HANDLER, HANDLER_OF_BYTES = "provision-ascii", "provision-ascii-and-bytes"
ASCII = {"✓": "+", "✗": "x", "›": ">", "·": ".", "…": "...", "→": "->", "≥": ">=", "≤": "<=", "×": "x", "–": "-"}


def can_encode(stream: TextIO, text: str) -> bool:
    """Whether this stream's encoding has all characters of `text`."""
    try:
        text.encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def replace_unknown_characters(*streams: object) -> None:
    """From now on, write ASCII for the characters that a stream's encoding lacks; others as `\\u2713`."""
    codecs.register_error(HANDLER, _in_ascii)
    codecs.register_error(HANDLER_OF_BYTES, _in_ascii_or_bytes)
    for stream in streams:
        errors = getattr(stream, "errors", None)
        if errors in ("strict", "backslashreplace", "surrogateescape") and hasattr(stream, "reconfigure"):
            # `surrogateescape`, of the locales C and POSIX, brings back the bytes of a file's name.
            stream.reconfigure(errors=HANDLER_OF_BYTES if errors == "surrogateescape" else HANDLER)


def discard_stdout() -> None:
    """Throw away what is left in the buffer, because the reader of our output has closed it (`provision list | head -1`).

    Without this the interpreter tries again at its end, and turns our exit code into 120.
    """
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    wrong = error.object[error.start : error.end]
    return "".join(ASCII.get(letter, f"\\u{ord(letter):04x}") for letter in wrong), error.end


def _in_ascii_or_bytes(error: UnicodeError) -> tuple[str | bytes, int]:
    """As `_in_ascii`; what stands for a byte that is not text (PEP 383) becomes that byte."""
    if isinstance(error, UnicodeEncodeError) and 0xDC80 <= ord(error.object[error.start]) <= 0xDCFF:
        return bytes([ord(error.object[error.start]) - 0xDC00]), error.start + 1
    return _in_ascii(error)
