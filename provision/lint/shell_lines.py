"""Reads the lines of a shell script: continuations and quoted texts joined, split into words and into simple commands.

The script is read as text, not run. What bash would do with loops, functions and substitutions is not known here.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

LAUNCHERS = ("srun", "mpirun", "mpiexec", "aprun", "horovodrun")
CONTAINERS = ("singularity", "apptainer", "shifter", "podman-hpc")
SHELLS = ("bash", "sh", "zsh", "ksh", "dash")
PUNCTUATION = frozenset(";&|(){}")
# Words before the name of a command that start no other program.
KEYWORDS = (
    "then",
    "do",
    "else",
    "elif",
    "if",
    "while",
    "until",
    "!",
    "{",
    "(",
    "time",
    "exec",
    "nohup",
    "command",
    "builtin",
)
ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
# The folder of the script in spellings that hold punctuation.
FOLDER = re.compile(
    r"\$\(pwd(?: -P)?\)|`pwd`|\$\(dirname \"?\$(?:0|\{?BASH_SOURCE(?:\[0\])?\}?)\"?\)|`dirname \"?\$0\"?`"
    r"|\$\(realpath \.\)"
)
HERE_DOCUMENT = re.compile(r"(?<!<)<<-?\s*(['\"]?)([A-Za-z_]\w*)\1")
REDIRECTED = re.compile(r"\d?[<>]&(?:\d|-)")
MOST_JOINED, MOST_TRIED = 200, 8
"""The longest quoted text in lines, and the marks tried as its end; a quote that nothing closes ends at its own line."""
DEEPEST = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A logical line: continuations joined, comments removed, split into words (a comment line has none)."""

    number: int
    text: str
    words: tuple[str, ...]
    glued: bool
    """Whether a backslash at the end of a line joins the word before it and the first word of the next line."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """A simple command: its words without assignments and keywords, and what it is in.

    `within` are the words before `bash -c` of the command that starts it, for example those of a launcher and a container.
    """

    line: Line
    words: tuple[str, ...]
    within: tuple[str, ...] = ()
    ends_with: str = ""
    """The operator behind it: `&`, `|`, `;`, `&&`, or nothing."""

    @cached_property
    def all_words(self) -> tuple[str, ...]:
        """Its words behind those of what it is in."""
        return (*self.within, *self.words)

    @property
    def name(self) -> str:
        """The name of its program without folders."""
        return base(self.words[0]) if self.words else ""

    @cached_property
    def launcher(self) -> tuple[str, tuple[str, ...]] | None:
        """The launcher that starts its program on the nodes, with the words behind it; None if it has none."""
        words = self.all_words
        for index, word in enumerate(words):
            name = re.sub(r"^(mpirun|mpiexec)\.\w+$|^orterun$", lambda match: match[1] or "mpirun", base(word))
            if name in LAUNCHERS and (index == 0 or _starts_here(words[:index])):
                return name, words[index + 1 :]
        return None

    @property
    def in_container(self) -> bool:
        """Whether its program runs in a container."""
        return any(base(word) in CONTAINERS for word in self.all_words)


def base(word: str) -> str:
    """The last part of a path."""
    return word.rsplit("/", 1)[-1]


def _starts_here(before: Sequence[str]) -> bool:
    """Whether a word behind these words is the name of a program."""
    return all(ASSIGNMENT.fullmatch(word) or word in ("env", "numactl") or word.startswith("-") for word in before)


def read_lines(text: str) -> Iterator[Line]:
    """The logical lines of a script, in order."""
    raws = text.splitlines()
    index = 0
    while index < len(raws):
        first, whole, glued = index, "", False
        while True:
            raw = raws[index]
            index += 1
            if raw.endswith("\\") and not (raw.lstrip().startswith("#") and not whole) and index < len(raws):
                glued = glued or bool(re.search(r"[^\s\\]\\$", raw) and re.match(r"[^\s#]", raws[index]))
                whole += raw[:-1] + " "
                continue
            whole += raw[:-1] + " " if raw.endswith("\\") and not raw.lstrip().startswith("#") else raw
            break
        stripped = whole.strip()
        if stripped.startswith("#"):
            yield Line(number=first + 1, text=stripped, words=(), glued=False)
            continue
        words = _words(stripped)
        if words is None:  # a quoted text goes on in the next line
            stripped, words, index = _join(stripped, raws, index)
        index = _after_document(stripped, words, raws, index)
        yield Line(number=first + 1, text=stripped, words=words, glued=glued)


def _join(text: str, raws: Sequence[str], index: int) -> tuple[str, tuple[str, ...], int]:
    """The text with the following lines up to the end of its quoted text, its words, and the line after it."""
    quote, whole, tried = _open_quote(text), text, 0
    for number in range(index, min(index + MOST_JOINED, len(raws))):
        raw = raws[number]
        whole += (raw[:-1] + " ") if raw.endswith("\\") else f"\n{raw}"
        if quote in raw and tried < MOST_TRIED:
            words, tried = _words(whole), tried + 1
            if words is not None:
                return whole.strip(), words, number + 1
    return text, tuple(text.split()), index


def _open_quote(text: str) -> str:
    """The quotation mark that opens a text and that nothing closes."""
    quote = ""
    for position, character in enumerate(text):
        if character in "'\"" and (not quote or quote == character) and text[position - 1 : position] != "\\":
            quote = "" if quote else character
    return quote or "'"


def _after_document(text: str, words: tuple[str, ...], raws: Sequence[str], index: int) -> int:
    """The line behind a here-document, whose text is no command unless a shell reads it."""
    document = HERE_DOCUMENT.search(text[:10_000])
    if document is None or {base(word) for word in words} & {*SHELLS, "ssh"}:
        return index
    end = document[2]
    return next((number + 1 for number in range(index, len(raws)) if raws[number].strip() == end), index)


def _words(text: str) -> tuple[str, ...] | None:
    """The words of a line without its comment; None if a quoted text has no end."""
    lexer = shlex.shlex(_plain(text), posix=True, punctuation_chars=";&|()")
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        return tuple(lexer)
    except ValueError:
        return None


def _plain(text: str) -> str:
    """The text without its comment and without `2>&1`, whose punctuation separates no commands."""
    quote, before = "", " "
    for position, character in enumerate(text):
        if character in "'\"" and (not quote or quote == character) and before != "\\":
            quote = "" if quote else character
        if character == "#" and not quote and before.isspace():
            text = text[:position]
            break
        before = character
    return REDIRECTED.sub(" ", FOLDER.sub("$PWD", text)).replace("&>", ">")


def read_commands(line: Line) -> Iterator[Command]:
    """The simple commands of a line, also those that it gives to `bash -c`."""
    yield from _commands(line, line.words, (), DEEPEST)


def _commands(line: Line, words: Sequence[str], within: tuple[str, ...], depth: int) -> Iterator[Command]:
    simple: list[str] = []
    for word in (*words, ";"):
        separates = bool(word) and PUNCTUATION.issuperset(word)
        if not separates:
            simple.append(word)
            continue
        while simple and (simple[0] in KEYWORDS or ASSIGNMENT.fullmatch(simple[0])):
            if ASSIGNMENT.fullmatch(simple[0]) and len(simple) == 1:
                break
            simple.pop(0)
        if simple:
            yield from _descend(line, tuple(simple), within, word, depth)
        simple = []


def _descend(line: Line, words: tuple[str, ...], within: tuple[str, ...], ends: str, depth: int) -> Iterator[Command]:
    """A command, or the commands in the text that it gives to a shell."""
    for index, word in enumerate(words[:-1] if depth else ()):
        if base(word) in SHELLS:
            for place, option in enumerate(words[index + 1 :], index + 1):
                if re.fullmatch(r"-[a-z]*c", option) and place + 1 < len(words):
                    for text in words[place + 1].splitlines():
                        given = words[place + 3 :]  # `$0` comes first
                        plain = _words(text) or tuple(text.split())
                        inner = [part for word in plain for part in (given if word in ("$@", "$*") else (word,))]
                        yield from _commands(line, inner, (*within, *words[:index]), depth - 1)
                    return
                if not option.startswith("-"):
                    break
    if words[0] == "eval" and depth and len(words) > 1:
        yield from _commands(line, _words(" ".join(words[1:])) or words[1:], within, depth - 1)
        return
    yield Command(line=line, words=words, within=within, ends_with=ends)
