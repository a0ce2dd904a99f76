"""The parts of a line as it was written: what a progress bar wrote over, lines of many kilobytes, and documents in one line."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

# Longer lines are read in parts, which overlap so that each message is whole in one of them.
WINDOW, OVERLAP = 8192, 512
# A line of this length that begins like JSON is data, such as the report of an inspection: its lists name files and errors of
# all kinds. A log in JSON has shorter lines.
DATA, MOST_OF_A_LOG_LINE = (b'{"', b'[{"'), 2000


def is_data(line: bytes) -> bool:
    """Whether a line is a document, and not a message."""
    return len(line) > MOST_OF_A_LOG_LINE and line.lstrip().startswith(DATA)


def read_text(line: bytes) -> str:
    """The text of a line."""
    return line.decode("utf-8", "replace").rstrip()


def split_parts(line: bytes) -> Iterable[bytes]:
    """The parts of a line that a progress bar writes over each other, none longer than WINDOW; of data none."""
    if is_data(line):
        return
    for part in line.split(b"\r"):
        if len(part) <= WINDOW:
            yield part
        else:
            for start in count(0, WINDOW - OVERLAP):
                if start >= len(part):
                    break
                piece = part[start : start + WINDOW]
                # A part begins between words, so that no half of a secret is shown.
                yield piece[piece.find(b" ", 0, OVERLAP) + 1 :] if start else piece
