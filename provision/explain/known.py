"""The known failures: the files in `known/`, and the index by which the patterns for a line are found.

A file is plain text, so that a pattern stands there as it is, and that all of them are read in milliseconds: blocks of
`[id]` and lines `key: value`. Keys: `example` (what a log contains, word by word), `level` (default `cause`), `warned: yes` (a
line that is only a warning counts too), `match` (a regular expression for one line, as often as needed; its named groups may
stand in the cause and the hint as `{name}`), `cause`, `hint`, and `source` (where it was seen).

Compiling thousands of patterns takes a second. So each pattern is found by the words that every line has that it matches, and is
compiled when the first line with these words comes.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property

LEVELS = {
    "cause": 7,
    "error": 6,
    "repeated": 6,
    "complaint": 6,
    "symptom": 5,
    "report": 4,
    "remark": 3,
    "wait": 2,
    "consequence": 1,
    "notice": 0,
}
"""How much a line with a known failure says, from the strongest. `conclude` explains each, and how they are ranked."""
OTHERS = ("success", "installed", "end", "progress", "fatal", "excuse", "excuse-above", "excuse-below", "probe")
"""Levels of lines that are no failures, and decide whether one that was found counts."""
KEYS = ("example", "level", "warned", "match", "cause", "hint", "source")


def word_set(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


# Words of very many patterns and logs: a pattern is found by a rarer one.
COMMON = word_set(
    "the and for not was with from this that have has are can could cannot failed fail error errors file "
    "files found find such directory line code module python tensorflow horovod import open run job node "
    "set use version invalid unknown name type value object attribute required while"
)
WORD = re.compile(r"[a-z]{3,}")
BEGINNING = 5
"""So many letters of a word stand for it if its end is not known."""
LONGEST_REPETITION = 400
# Marks in what is left of a pattern: any text, perhaps letters; a place where no letter can be; a character that may be missing;
# and repetitions of what stands before them, at least once or perhaps never.
ANY, BORDER, MAYBE, SOME, NONE = "\0", "\1", "\2", "\3", "\4"
NO_LETTER = f"[^A-Za-z()|.\n{ANY}{MAYBE}{SOME}{NONE}]"
STEPS = (
    (re.compile(r"\(\?i:([A-Za-z ]+)\)(?![?*+{])"), r"\1"),
    (re.compile(r"\\[bdsWntr]|\\[^A-Za-z0-9\n]"), BORDER),
    (re.compile(r"\\[A-Za-z0-9]"), ANY),
    (re.compile(r"\[([A-Za-z])(?i:\1)\]"), r"\1"),
    (re.compile(rf"\[(?:\^|[^\]\n]*?[A-Za-z{ANY}])\]?[^\]\n]*\]"), ANY),
    (re.compile(r"\[\]?[^\]\n]*\]"), BORDER),
    (re.compile(r"\(\?<?[=!][^()\n]*\)"), ""),
    (re.compile(r"\+|\{[1-9]\d*,?\d*\}"), SOME),
    (re.compile(r"\*|\{0?,\d*\}|\{0\}|(?<!\()\?"), NONE),
    (re.compile(rf"{NONE}(?<=[{SOME}{NONE}]{NONE})"), ""),  # as few as possible
    (re.compile(rf"{SOME}(?<={NO_LETTER}{SOME})"), ""),
    (re.compile(rf"{NO_LETTER}{NONE}"), MAYBE),
    (re.compile(f"{MAYBE}{MAYBE}+"), MAYBE),
    (re.compile(rf"{MAYBE}(?:(?<={NO_LETTER}{MAYBE})|(?={NO_LETTER}))"), ""),
)
# A group: its text if it has one branch and is there for sure.
GROUP = re.compile(rf"\((?:\?:|\?P<\w+>|(?!\?))([^()\n|]*)\)(?![{SOME}{NONE}])|\([^()\n]*\)[{SOME}{NONE}]*")
LEFT = ((".", ANY), (MAYBE, ANY), (SOME, ANY), (NONE, ANY), ("^", BORDER), ("$", BORDER))
WHOLE = re.compile(f"(?<![a-z{ANY}])[a-z]{{3,}}(?![a-z{ANY}])")
BEGUN = re.compile(f"(?<![a-z{ANY}])[a-z]{{{BEGINNING}}}")
LINE = re.compile(r"^(?:\[(?P<id>[a-z0-9-]+)\]|match: (?P<match>.+))$", re.MULTILINE)
CASED = re.compile(r"[^\W_]|\[([A-Za-z])(?!\1)(?i:\1)\]")
TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{\d*,?\d*\}|[^\\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFailure:
    """A known failure."""

    id: str
    cause: str
    hint: str
    source: str = ""
    level: str = "cause"
    warned: bool = False
    example: str = ""
    match: tuple[str, ...] = ()

    @property
    def strength(self) -> int:
        """How much it says; -1 for lines that are no failures."""
        return LEVELS.get(self.level, -1)

    @property
    def quotes(self) -> bool:
        """Whether it only repeats what the line says."""
        return "{text}" in self.cause


class Known:
    """All known failures."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._blocks: dict[str, str] = {}
        self._patterns: list[tuple[str, str]] = []
        for text in texts:
            for block in f"\n{text}".split("\n[")[1:]:
                name, _, lines = block.partition("]\n")
                if name in self._blocks:
                    raise ValueError(f"`{name}` is there twice")
                self._blocks[name] = lines
                self._patterns += [(name, line[7:]) for line in lines.split("\n") if line.startswith("match: ")]
        self._entries: dict[str, KnownFailure] = {}
        self._compiled: dict[int, re.Pattern[str]] = {}

    @cached_property
    def words(self) -> list[frozenset[str]]:
        """The words of each pattern: whole ones, or beginnings, which end in `*`."""
        return sure_words([pattern for _, pattern in self._patterns])

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """The words of all patterns."""
        return frozenset().union(*self.words)

    @cached_property
    def index(self) -> dict[str, list[int]]:
        """The numbers of the patterns by their rarest word."""
        often = Counter(word for words in self.words for word in words)
        index: dict[str, list[int]] = defaultdict(list)
        for number, words in enumerate(self.words):
            index[
                min(words, key=lambda word: (word in COMMON or word[-1] == "*", often[word], -len(word), word))
            ].append(number)
        return index

    def candidates(self, words: frozenset[str]) -> list[int]:
        """The numbers of the patterns all of whose words are in a line with these words, the longest first."""
        fitting = [
            number for word in words & self.index.keys() for number in self.index[word] if self.words[number] <= words
        ]
        return sorted(fitting, key=lambda number: (-self.specific(number), number))

    def matches(self, text: str) -> list[tuple[int, KnownFailure, re.Match[str]]]:
        """The entries that match a text, with the number of the first of their patterns that does, the longest first."""
        found: dict[str, tuple[int, KnownFailure, re.Match[str]]] = {}
        for number in self.candidates(line_words(text)):
            entry = self.entry_of(number)
            if entry.id not in found and (match := self.pattern(number).search(text)):
                found[entry.id] = number, entry, match
        return list(found.values())

    def specific(self, number: int) -> int:
        """How much of a line a pattern requires: of two that match one line, the longer one says more about it."""
        return sum(map(len, self.words[number]))

    def entry_of(self, number: int) -> KnownFailure:
        """The entry of a pattern."""
        return self.entry(self._patterns[number][0])

    def pattern(self, number: int) -> re.Pattern[str]:
        """A pattern, compiled: one that begins with a letter begins at the beginning of a word, and no repetition is endless."""
        if number not in self._compiled:
            self._compiled[number] = compile_pattern(self._patterns[number][1])
        return self._compiled[number]

    def entry(self, name: str) -> KnownFailure:
        """The entry with this ID."""
        if name not in self._entries:
            self._entries[name] = parse_entry(name, self._blocks[name])
        return self._entries[name]

    @property
    def names(self) -> Collection[str]:
        """The IDs of all entries."""
        return self._blocks.keys()

    @property
    def entries(self) -> list[KnownFailure]:
        """All entries, in the order of the files."""
        return [self.entry(name) for name in self._blocks]


def parse_entry(name: str, lines: str) -> KnownFailure:
    """One entry.

    Raises:
        ValueError: a line has no key of an entry, or the level is unknown.
    """
    values: dict[str, list[str]] = defaultdict(list)
    for line in filter(None, lines.split("\n")):
        key, _, value = line.partition(": ")
        if line.startswith("#"):
            continue
        if key not in KEYS or not value:
            raise ValueError(f"`{name}`: `{line}` is not a line of an entry")
        values[key].append(value)
    level = values["level"][0] if values["level"] else "cause"
    if level not in LEVELS and level not in OTHERS:
        raise ValueError(f"`{name}`: unknown level `{level}`")
    return KnownFailure(
        id=name,
        level=level,
        warned=bool(values["warned"]),
        example="\n".join(values["example"]),
        match=tuple(values["match"]),
        cause="".join(values["cause"]),
        hint="".join(values["hint"]),
        source="".join(values["source"]),
    )


def line_words(text: str) -> frozenset[str]:
    """The words of a line, in small letters, and their beginnings, which end in `*`."""
    words = WORD.findall(text.lower())
    return frozenset((*words, *(f"{word[:BEGINNING]}*" for word in words if len(word) >= BEGINNING)))


def sure_words(patterns: list[str]) -> list[frozenset[str]]:
    """The words that each text contains that a pattern matches, for each pattern; all are taken apart at once.

    A word counts if it cannot be part of a longer one, as `disk` and `quota` in `disk quota exceeded`. If a pattern has no such
    word, it is the beginning of one: `excee*`.

    Raises:
        ValueError: a pattern has neither.
    """
    plain = [pattern.removeprefix("(?i)") for pattern in patterns]
    text = "\n".join((BORDER if CASED.match(pattern) else ANY) + pattern + ANY for pattern in plain)
    for step, becomes in STEPS:
        text = step.sub(becomes, text)
    count = 1
    while count:
        text, count = GROUP.subn(lambda group: ANY if group[1] is None else group[1], text)
    for left, becomes in LEFT:
        text = text.replace(left, becomes)
    found = []
    for pattern, rest in zip(patterns, text.lower().split("\n"), strict=True):
        words = WHOLE.findall(rest) or [f"{word}*" for word in BEGUN.findall(rest)]
        if not words:
            raise ValueError(f"`{pattern}` has no whole word, by which its lines could be found")
        found.append(frozenset(words))
    return found


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """A pattern of an entry, so that it begins at a word and takes time that grows with the length of the line only."""
    plain = pattern.removeprefix("(?i)")
    tokens: list[str] = [r"\b"] if CASED.match(plain) else []
    for token in TOKEN.findall(plain):
        if token in ("*", "+") and tokens[-1:] != ["("]:
            token = f"{{{'01'[token == '+']},{LONGEST_REPETITION}}}"
        elif re.fullmatch(r"\{\d+,\}", token):
            token = f"{token[:-1]}{LONGEST_REPETITION}}}"
        tokens.append(token)
    return re.compile("".join(tokens), re.IGNORECASE if plain != pattern else 0)
