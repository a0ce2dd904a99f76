"""The streams of this process: messages for people on stderr, questions on stdin, data on stdout.

A stream whose encoding lacks our marks gets ASCII, and a closed pipe gets nothing.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import sys
from collections.abc import Callable
from typing import TextIO

from provision.errors import ProvisionError
from provision.machine.programs.secrets_here import secrets_here
from provision.profile.patterns import show_controls

HANDLER, HANDLER_OF_BYTES = "provision-ascii", "provision-ascii-and-bytes"
ASCII = {"✓": "+", "✗": "x", "›": ">", "·": ".", "…": "...", "→": "->", "≥": ">=", "≤": "<=", "×": "x", "–": "-"}

completes: Callable[[str], str] = str
"""What completes the commands in a line that is said: the command line sets it."""


def is_terminal(stream: TextIO) -> bool:
    """Whether a table can be drawn: it is a terminal that can move its cursor."""
    return stream.isatty() and os.environ.get("TERM", "") != "dumb"


def for_people(text: str) -> str:
    """The text as a terminal may get it: lines and tabs stay, and any other control character is shown as an escape sequence.

    Logs, names of files and answers of programs may hold what would clear the screen, set the clipboard or hide a part. All
    text for people passes here, and our own colours are added behind it.
    """
    return show_controls(text, keep="\n\t")


def say(text: str) -> None:
    """Print a line to stderr, without the secrets of this run."""
    _say(for_people(secrets_here().hide(completes(text))))


def say_error(error: ProvisionError, of: str) -> None:
    """Say an error whole, each line with what it is of: an arch among several."""
    for line in error.to_lines():
        say(f"{of}: {line}" if line else "")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def write_out(text: str) -> None:
    """Print a text to stdout."""
    text = for_people(text)
    print(text, end="" if text.endswith("\n") else "\n", flush=True)


def width_of_output() -> int | None:
    """How wide stdout is, in characters; None if it is not a terminal, so that nothing has to fit."""
    if not sys.stdout.isatty():
        return None
    from provision.machine.programs.shell import columns

    return columns()


def can_ask() -> bool:
    """Whether a person can answer questions: stdin is a terminal."""
    return is_terminal(sys.stdin)


def ask(question: str) -> str | None:
    """Print a question to stderr and read the line that answers it from stdin; None at the end of stdin (Ctrl-D)."""
    print(for_people(question), end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    return line.strip() if line else None


def show_error(error: ProvisionError) -> None:
    """Print an error; only the word `error:` is coloured, and only on a terminal without NO_COLOR."""
    first, *rest = error.to_lines()
    colour = is_terminal(sys.stderr) and not os.environ.get("NO_COLOR")
    first = for_people(secrets_here().hide(first))
    _say(first.replace("error:", "\033[1;31merror:\033[0m", 1) if colour else first)
    for line in rest:
        _say(for_people(secrets_here().hide(line)))


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
