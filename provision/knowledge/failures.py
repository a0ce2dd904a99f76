"""Reads the log of a failed step: picks the lines that look like errors, and recognises a known failure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

# The first lines that show what went wrong; pip and make print useless summaries at the end.
ERROR_LINE = re.compile(
    r"\b[Ee]rror\b|ERROR|[Ff]atal|FAILED|undefined reference|[Nn]ot found|No such file|Traceback|Exception|Killed|"
    r"==[^\s=]+ from |Expected sha256|\bGot  +[0-9a-f]{64}|"
    r"^\w+Error: |^(\w+\.)+\w+: |"  # the last line of a Python traceback
    r"CANCELLED|TIMEOUT|DUE TO TIME LIMIT|Illegal instruction|[Pp]ermission denied|No space left|signal \d+|"
    r"pthread_create|Thread creation failed"
)
NOISE_LINE = re.compile(
    r"subprocess-exited-with-error|This error originates from|Failed building wheel|Failed to build|note:|-Werror|"
    r"ninja: build stopped|returned non-zero exit status|^\s*raise |Performing Test|Looking for|/errors?\.|error\.(py|h|cc)|"
    # pip runs setup.py with a small program, and prints that program when it fails.
    r"provides a clear error|except ImportError as error|Can not execute .setup|Rebuild target|CMakeError.log|oneDNN"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFailure:
    """A failure that was seen before: how to recognise it, its cause, how to fix it, and where it was seen."""

    id: str
    match: str
    cause: str
    hint: str
    source: str


def parse_failures(text: str) -> tuple[KnownFailure, ...]:
    """The known failures in the text of `failures.toml`, in the order in which they are tried."""
    import sys

    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    return tuple(KnownFailure(**entry) for entry in tomllib.loads(text)["failure"])


def explain(lines: Sequence[str], failures: Sequence[KnownFailure]) -> KnownFailure | None:
    """The first of the known failures that these lines show, or None."""
    for failure in failures:
        pattern = re.compile(failure.match)
        if any(pattern.search(line) for line in lines):
            return failure
    return None


def pick_error_lines(lines: Sequence[str], most: int = 8) -> tuple[str, ...]:
    """The first lines that look like errors, or the last lines if none does; at most `most`, each at most 300 long."""
    errors = [line.strip() for line in lines if ERROR_LINE.search(line) and not NOISE_LINE.search(line)]
    chosen = list(dict.fromkeys(errors))[:most] or [line.strip() for line in lines if line.strip()][-most:]
    return tuple(line[:300] for line in chosen)
