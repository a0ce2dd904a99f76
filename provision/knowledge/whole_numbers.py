"""Numbers in texts that others wrote: an answer of a scheduler, a script, a file's name."""

from __future__ import annotations

import re

# Python's own `int` takes the digits of every script, refuses some characters that `isdigit` accepts (`²`), and refuses more
# than 4300 digits. No number that we read has more than 15.
WHOLE = re.compile(r"[0-9]{1,15}")


def whole_number(text: str) -> int | None:
    """The whole number, 0 or more, that this text is; None if it is anything else."""
    return int(text) if WHOLE.fullmatch(text) else None
