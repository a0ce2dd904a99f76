"""The words by which a regular expression's lines are found: looking up words is many times faster than trying patterns."""

from __future__ import annotations

import re
from collections.abc import Iterator

# The parts of a regular expression: an escape, a class, a repetition, or one character.
TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{\d*,?\d*\}|[^\\]")
# A word of a line. Digits and `_` are not part of it, so that `GLIBC_2.29` and `GLIBC_2.34` have the same word.
WORD = re.compile(r"[a-z]{3,}")
# The beginning of a pattern that begins with a letter, in one case or in both, as `[Uu]nable`.
CASED = re.compile(r"[^\W_]|\[([A-Za-z])(?!\1)(?i:\1)\]")
# In the skeleton of a pattern: any text, perhaps letters; and a place where no letter can be.
ANY, BORDER = "\0", "\1"
REPEATED = ("*", "+", "?")
# A path has at most so many letters in practice; `log_reader` cuts long lines into parts that overlap by a little more.
LONGEST_REPETITION = 400
# So many letters of a word stand for it if its end is not known.
BEGINNING = 5


def word_set(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


def split_alternatives(pattern: str) -> Iterator[str]:
    """The alternatives of a regular expression: the parts between `|` outside of all parentheses."""
    parts, depth = [""], 0
    for token in TOKEN.findall(pattern):
        if depth == 0 and token == "|":
            yield parts[0]
            parts = [""]
            continue
        depth += {"(": 1, ")": -1}.get(token, 0)
        parts[0] += token
    yield parts[0]


def line_words(text: str) -> frozenset[str]:
    """The words of a line, in small letters, and their beginnings, which end in `*`."""
    words = WORD.findall(text.lower())
    return frozenset((*words, *(f"{word[:BEGINNING]}*" for word in words if len(word) >= BEGINNING)))


def sure_words(alternative: str) -> frozenset[str]:
    """The words, in small letters, that each text contains that this pattern without alternatives matches.

    A word counts if it cannot be part of a longer one, as `disk` and `quota` in `disk quota exceeded`: a pattern begins at the
    beginning of a word. If there is no such word, it is the beginning of one: `excee*`.
    """
    skeleton = _skeleton(alternative).lower()
    # A word next to ANY may be part of a longer one.
    whole = WORD.findall(re.sub(f"[a-z]+(?={ANY})|(?<={ANY})[a-z]+", BORDER, skeleton))
    if whole:
        return frozenset(whole)
    begun = re.findall(f"(?<![a-z{ANY}])[a-z]{{{BEGINNING}}}", skeleton)
    return frozenset(f"{word}*" for word in begun)


def from_word(alternative: str) -> str:
    """The pattern of an alternative: one that begins with a letter begins at the beginning of a word."""
    return rf"\b{alternative}" if CASED.match(alternative) else alternative


def bound_repetitions(pattern: str) -> str:
    """The pattern with an end for each repetition: without one, the time for a line grows with the square of its length."""
    tokens: list[str] = []
    for token in TOKEN.findall(pattern):
        if token in ("*", "+") and tokens[-1:] != ["("]:
            token = f"{{{'01'[token == '+']},{LONGEST_REPETITION}}}"
        elif re.fullmatch(r"\{\d+,\}", token):
            token = f"{token[:-1]}{LONGEST_REPETITION}}}"
        tokens.append(token)
    return "".join(tokens)


def _skeleton(alternative: str) -> str:
    """The literal text of a pattern, with ANY and BORDER for what is not literal."""
    text, depth = BORDER if alternative[:1].isalnum() else ANY, 0
    tokens = TOKEN.findall(alternative)
    for index, token in enumerate(tokens):
        following = tokens[index + 1][0] if index + 1 < len(tokens) else ""
        depth += {"(": 1, ")": -1}.get(token, 0)
        if depth or token == ")":
            text += ANY
        elif token in REPEATED or (token[0] == "{" and len(token) > 1):
            continue
        else:
            text += _repeated(_literal(token), following)
    return text + ANY


def _literal(token: str) -> str:
    """What one part of a pattern contributes: its letter, BORDER if no letter can be there, else ANY."""
    if len(token) == 1:
        return {".": ANY, "^": BORDER, "$": BORDER}.get(token, token)
    if token[0] == "\\":
        if token[1] in "bdsW":
            return BORDER
        return ANY if token[1].isalnum() else token[1]
    letters = token[1] == "^" or re.search(r"[a-zA-Z]", re.sub(r"\\[ds]", "", token[1:-1]))
    return ANY if letters else BORDER


def _repeated(literal: str, following: str) -> str:
    """The contribution of a part with a repetition behind it."""
    if following in ("*", "?", "{"):
        return ANY
    return ANY if following == "+" and literal.isalpha() else literal
