"""The catalogue of known failures: what is known about each, and an index of the words of their patterns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from provision.knowledge.failures.words import bound_repetitions, from_word, split_alternatives, sure_words, word_set

# What a failure says about the log, from the strongest: the cause itself; an error that may have several causes; how a
# program died; the words of a program that no other entry explains; what follows from a failure elsewhere; and a line that
# healthy logs contain too.
WEIGHTS = {"cause": 5, "error": 4, "symptom": 3, "report": 2, "consequence": 1, "notice": 0}
PHASES = ("plan", "fetch", "build", "import", "load", "launch", "run")
CAUGHT = ("preflight", "inspection", "proof", "lint", "explain")
# Words of many patterns and logs: a line is not looked up by them if its pattern has a rarer word.
COMMON = word_set(
    "the and for not was with from this that have has are can could cannot failed fail error errors file "
    "files found find "
    "such directory line code module python tensorflow horovod import open run job node set use version "
    "invalid unknown "
    "name type value object attribute required while"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFailure:
    """A failure that was seen before: how to recognise it, its cause, how to fix it, and where it was seen."""

    id: str
    message: str
    """What a log with this failure contains, word by word."""
    match: tuple[str, ...]
    """Regular expressions for one line, any of them. Their named groups may stand in `cause` and `hint` as `{name}`."""
    cause: str
    hint: str
    source: str
    weight: int = WEIGHTS["cause"]
    phase: tuple[str, ...] = ("run",)
    caught: tuple[str, ...] = ("explain",)
    program: bool = False
    """Whether the cause is in the user's own program."""
    warned: bool = False
    """Whether a line that is only a warning counts as much as an error."""
    elsewhere: bool = False
    """Whether the error itself is another line of the log: it is named instead if a program's own words say it there."""
    goes_on: bool = False
    """Whether programs often do without it: it counts only if the log shows another failure, or ends soon after it."""
    waits: bool = False
    """Whether a program waits, or tries again: it counts only if the log ends with this line."""
    traceback: bool = False
    """Whether a logger prints a traceback below it, which is as harmless as the record itself."""
    unless: str = ""
    """Of a line that is no failure: what it means to the user if it is one, as `the program should use a GPU`."""
    crashes: bool = False
    """Whether a native library crashed: the list of calls below the line names it."""
    of_launcher: bool = False
    """Whether launchers end ranks in this way after another one has crashed: of two that are as strong, that one comes first."""
    may_follow: bool = False
    """Whether an error above it often leads to it, as a file is missing that an earlier step did not write: it counts less
    than that, unless it names an absolute path."""
    ends: bool = False
    """Whether it is the end of a job by its scheduler: what programs print behind that line follows from it."""
    explains: tuple[str, ...] = ()
    """The failures that follow from it, if they name no absolute path: it is named instead of such a one below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """One of a failure's patterns, with the words that each line contains that it matches."""

    failure: KnownFailure
    pattern: str
    words: frozenset[str]
    ignore_case: bool

    @property
    def specific(self) -> int:
        """How much of a line this pattern requires: of two that match one line, the longer one says more about it."""
        return sum(map(len, self.words))

    def search(self, line: str) -> re.Match[str] | None:
        """The place in a line that matches; `re` keeps the compiled pattern."""
        return re.search(self.pattern, line, re.IGNORECASE if self.ignore_case else 0)


class Catalogue:
    """All known failures, and the index by which the candidates for a line are found."""

    def __init__(self, failures: Sequence[KnownFailure]) -> None:
        self.failures = tuple(failures)
        self.alternatives = tuple(found for failure in failures for found in read_alternatives(failure))

    @cached_property
    def order(self) -> dict[str, int]:
        """The place of each failure in the catalogue."""
        return {failure.id: place for place, failure in enumerate(self.failures)}

    @cached_property
    def index(self) -> dict[str, list[Alternative]]:
        """The alternatives by their rarest word."""
        often = Counter(word for alternative in self.alternatives for word in alternative.words)
        found: dict[str, list[Alternative]] = {}
        for alternative in self.alternatives:
            rarest = min(
                alternative.words, key=lambda word: (word in COMMON or word[-1] == "*", often[word], -len(word), word)
            )
            found.setdefault(rarest, []).append(alternative)
        return found

    def candidates(self, words: Iterable[str]) -> list[Alternative]:
        """The alternatives all of whose words are in a line with these words."""
        present = words if isinstance(words, (set, frozenset)) else set(words)
        found = [
            alternative
            for word in present & self.index.keys()
            for alternative in self.index[word]
            if alternative.words <= present
        ]
        # The order of a set differs from run to run; of equals the first in the catalogue is named in each.
        return sorted(found, key=lambda alternative: (-alternative.specific, self.order[alternative.failure.id]))


def read_alternatives(failure: KnownFailure) -> tuple[Alternative, ...]:
    """The alternatives of a failure's patterns.

    Raises:
        ValueError: an alternative has no whole word, so that its lines cannot be found quickly.
    """
    found = []
    for pattern in failure.match:
        plain = pattern.removeprefix("(?i)")
        for text in split_alternatives(plain):
            words = sure_words(text)
            if not words:
                raise ValueError(f"`{text}` in the patterns of `{failure.id}` has no whole word")
            found.append(
                Alternative(
                    failure=failure,
                    pattern=bound_repetitions(from_word(text)),
                    words=words,
                    ignore_case=plain != pattern,
                )
            )
    return tuple(found)


def parse_failures(texts: Iterable[str]) -> tuple[KnownFailure, ...]:
    """The known failures in the texts of the catalogue's files.

    Raises:
        ValueError: an entry has a wrong weight, phase or way of being caught, or an ID that another entry has.
    """
    import sys

    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    found = [_parse(entry) for text in texts for entry in tomllib.loads(text)["failure"]]
    for name, number in Counter(failure.id for failure in found).items():
        if number > 1:
            raise ValueError(f"`{name}` is in the catalogue {number} times")
    return tuple(found)


def _parse(entry: dict[str, Any]) -> KnownFailure:
    """One entry of the catalogue."""
    weight, phase, caught = entry.get("weight", "cause"), entry.get("phase", ["run"]), entry.get("caught", ["explain"])
    if weight not in WEIGHTS or not set(phase) <= set(PHASES) or not set(caught) <= set(CAUGHT):
        raise ValueError(f"`{entry['id']}`: weight {weight}, phase {phase}, caught {caught}")
    lists = {"match": tuple(entry["match"]), "phase": tuple(phase), "caught": tuple(caught)}
    lists["explains"] = tuple(entry.get("explains", ()))
    return KnownFailure(**{**entry, **lists, "weight": WEIGHTS[weight]})
