"""Reads the log of a failed step: picks the lines that look like errors, and recognises a known failure."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

# The first lines that show what went wrong; pip and make print useless summaries at the end.
ERROR_LINE = (
    r"\b[Ee]rror\b|ERROR|[Ff]atal|FAILED|undefined reference|[Nn]ot found|No such file|Traceback|Exception|Killed|"
    r"==(?:(?!==)\S)+ from |Expected sha256|\bGot  +[0-9a-f]{64}|"
    r"^\w+Error: |"  # the last line of a Python traceback; TRACEBACK_END is the other form
    r"CANCELLED|TIMEOUT|DUE TO TIME LIMIT|Illegal instruction|[Pp]ermission denied|No space left|signal \d+|"
    r"pthread_create|Thread creation failed"
)
# It has no word to search for, but after a line break few things match.
TRACEBACK_END = re.compile(r"\n(?:\w{1,100}\.)+\w{1,100}: ")
NOISE_LINE = re.compile(
    r"subprocess-exited-with-error|This error originates from|Failed building wheel|Failed to build|note:|-Werror|"
    r"ninja: build stopped|returned non-zero exit status|^\s*raise |Performing Test|Looking for|/errors?\.|error\.(py|h|cc)|"
    # pip runs setup.py with a small program, and prints that program when it fails.
    r"provides a clear error|except ImportError as error|Can not execute .setup|Rebuild target|CMakeError.log|oneDNN"
)

# A line is shown up to this length.
SHOWN = 300
# How much of a line, before and behind a word of a pattern, the pattern sees.
WINDOW = 8192
# The parts of a regular expression: an escape, a class, a repetition, or one character.
TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{\d*,?\d*\}|[^\\]")


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


class LogReader:
    """Reads a log of any length in blocks, with memory for one block, and remembers what it shows.

    Most lines of a log contain no word of any pattern. The words are searched in the whole block, which is many times faster
    than a pattern for each line; a pattern sees only the lines that contain one of its words.
    """

    def __init__(self, failures: Sequence[KnownFailure], most: int = 8) -> None:
        self._failures = failures
        self._most = most
        # The failures are tried in order, so those behind the one that was found need not be tried any more.
        self._candidates = len(failures)
        self._errors: dict[str, None] = {}
        self._last: deque[str] = deque(maxlen=most)

    def feed(self, text: str) -> None:
        """Read the next lines; `text` ends at the end of a line."""
        for index in range(self._candidates):
            if any(True for _ in matching(text, self._failures[index].match)):
                self._candidates = index
                break
        if len(self._errors) < self._most:
            for line in matching(text, ERROR_LINE, traceback_ends(text)):
                if not NOISE_LINE.search(line):
                    self._errors[line.strip()] = None
                    if len(self._errors) == self._most:
                        break
        self._last.extend(line.strip()[:SHOWN] for line in text[-WINDOW:].split("\n") if line.strip())

    @property
    def known(self) -> KnownFailure | None:
        """The first of the known failures that the lines show, or None."""
        return self._failures[self._candidates] if self._candidates < len(self._failures) else None

    @property
    def evidence(self) -> tuple[str, ...]:
        """The first lines that look like errors, or the last lines if none does, each at most `SHOWN` long."""
        return tuple(line[:SHOWN] for line in self._errors) or tuple(self._last)


def explain(lines: Iterable[str], failures: Sequence[KnownFailure]) -> KnownFailure | None:
    """The first of the known failures that these lines show, or None."""
    reader = LogReader(failures)
    reader.feed("\n".join(lines))
    return reader.known


def pick_error_lines(lines: Iterable[str], most: int = 8) -> tuple[str, ...]:
    """The first lines that look like errors, or the last lines if none does; at most `most`, each at most `SHOWN` long."""
    reader = LogReader((), most)
    reader.feed("\n".join(lines))
    return reader.evidence


def matching(text: str, pattern: str, also: Mapping[int, int] | None = None) -> Iterator[str]:
    """The lines of a text that a pattern matches, and those that begin and end at the places `also`, in order.

    Of a very long line it is the part around a word of the pattern.
    """
    ends = dict(also or {})
    for word, alternative in alternatives(pattern):
        at = text.find(word)
        while at >= 0:
            start = text.rfind("\n", max(0, at - WINDOW), at) + 1 or max(0, at - WINDOW)
            end = _end(text, at)
            if start not in ends and alternative.search(text[start:end]):
                ends[start] = end
            at = text.find(word, end)
    for start in sorted(ends):
        yield text[start : ends[start]]


def traceback_ends(text: str) -> dict[int, int]:
    """The beginnings and ends of the lines that end a traceback."""
    starts = [match.start() for match in TRACEBACK_END.finditer(f"\n{text}")]
    return {start: _end(text, start) for start in starts}


def _end(text: str, at: int) -> int:
    """The end of the line at this place, or of the part of it that is looked at."""
    end = text.find("\n", at, at + WINDOW)
    return end if end >= 0 else min(len(text), at + WINDOW)


@cache
def alternatives(pattern: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """The alternatives of a regular expression, each with the longest text that it contains literally.

    Raises:
        ValueError: an alternative has no literal text of two characters, so that its lines cannot be found quickly.
    """
    found = []
    runs, parts, depth = [""], [""], 0
    for token in [*TOKEN.findall(pattern), "|"]:
        if depth == 0 and token == "|":
            found.append((max(runs, key=len), re.compile("".join(parts))))
            runs, parts = [""], [""]
            continue
        parts.append(token)
        depth += {"(": 1, ")": -1}.get(token, 0)
        if token[0] in "?*{":  # what is before it may be absent
            runs[-1] = runs[-1][:-1]
        if depth or token[0] in "?*{+.^$[()" or (token[0] == "\\" and token[1].isalnum()):
            runs.append("")
        else:
            runs[-1] += token[-1]
    for word, alternative in found:
        if len(word) < 2:
            raise ValueError(f"`{alternative.pattern}` in `{pattern}` has no literal text")
    return tuple(found)
