"""Streams whose encoding lacks the marks that we print: latin-1 and ASCII terminals get ASCII instead of an error."""

from __future__ import annotations

import codecs
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


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    wrong = error.object[error.start : error.end]
    return "".join(ASCII.get(letter, f"\\u{ord(letter):04x}") for letter in wrong), error.end
