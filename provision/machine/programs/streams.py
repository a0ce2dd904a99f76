"""Streams that cannot take what we print: an encoding without our marks gets ASCII, and a closed pipe gets nothing."""

from __future__ import annotations

import codecs
import contextlib
import os
import sys
from typing import TextIO

HANDLER = "provision-ascii"
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
    for stream in streams:
        # `surrogateescape` brings back the bytes of a file's name, so it stays.
        if getattr(stream, "errors", None) in ("strict", "backslashreplace") and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=HANDLER)


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
