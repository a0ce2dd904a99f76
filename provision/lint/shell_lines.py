"""Reads the lines of a shell script: continuations and quoted texts joined, split into words and into simple commands.

The script is read as text, not run. What bash would do with loops, functions and substitutions is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

LAUNCHERS = ("srun", "mpirun", "mpiexec", "aprun", "horovodrun")
CONTAINERS = ("singularity", "apptainer", "shifter", "podman-hpc")
SHELLS = ("bash", "sh", "zsh", "ksh", "dash")
PYTHON = re.compile(r"(?:.*/)?python[0-9.]*")
# Words before the name of a command that start no other program.
KEYWORDS = {
    *("then", "do", "else", "elif", "if", "while", "until", "!", "{", "(", "time", "exec", "nohup", "command"),
    *("builtin",),
}
ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
# The folder of the script in spellings that hold punctuation.
FOLDER = re.compile(
    r"\$\(pwd(?: -P)?\)|`pwd`|\$\(dirname \"?\$(?:0|\{?BASH_SOURCE(?:\[0\])?\}?)\"?\)|`dirname \"?\$0\"?`"
    r"|\$\(realpath \.\)"
)
QUOTED = re.compile(r"\\(.)|\"((?:\\.|[^\"\\])*)\"|'([^']*)'", re.DOTALL)
# A quote that nothing closes is a character of its word. `2>&1` separates no commands.
TOKEN = re.compile(
    r"(?P<space>(?:[^\S\n]|\\\n|\d?[<>]&[\d-]|&(?=>))+)|(?P<end>\n)|(?P<comment>#[^\n]*)|(?P<sign>[;&|()]+)"
    rf"|(?:{FOLDER.pattern}|{QUOTED.pattern}|[^\s;&|()\\]|\\)+",
    re.DOTALL,
)
HERE_DOCUMENT = re.compile(r"(?<!<)<<-?\s*(['\"]?)([A-Za-z_]\w*)\1")
DEEPEST = 5


@dataclass(frozen=True, kw_only=True)
class ShellLine:
    """A logical line: continuations joined, comments removed, split into words (a comment line has none)."""

    number: int
    text: str
    words: tuple[str, ...] = ()
    glued: bool = False
    """Whether a backslash at the end of a line joins the word before it and the first word of the next line."""


class Torchrun(NamedTuple):
    """How a command starts torchrun: the words before it, and those behind it."""

    before: tuple[str, ...]
    words: tuple[str, ...]

    def value(self, name: str) -> str:
        """The value of its option with this name, a pattern; empty if it has none."""
        match = re.search(rf"(?:^| )--(?:{name})[= ](\S*)", " ".join(self.words))
        return match[1] if match else ""


@dataclass(frozen=True, kw_only=True)
class ShellCommand:
    """A simple command: its words without assignments and keywords, and what it is in.

    `within` are the words before `bash -c` of the command that starts it, for example those of a launcher and a container.
    """

    line: ShellLine
    words: tuple[str, ...]
    within: tuple[str, ...] = ()
    ends_with: str = ""
    """The operator behind it: `&`, `|`, `;`, `&&`, or nothing."""

    @cached_property
    def all_words(self) -> tuple[str, ...]:
        """Its words behind those of what it is in."""
        return (*self.within, *self.words)

    @cached_property
    def plain(self) -> tuple[str, ...]:
        """Its words that are not options."""
        return tuple(word for word in self.words if not word.startswith("-"))

    @property
    def name(self) -> str:
        """The name of its program without folders."""
        return base(self.words[0])

    @cached_property
    def launched(self) -> tuple[str, ...]:
        """The launcher that starts its program on the nodes, and the words behind it; empty if it has none."""
        for index, word in enumerate(self.all_words):
            name = re.sub(r"^(mpirun|mpiexec)\.\w+$|^orterun$", lambda match: match[1] or "mpirun", base(word))
            if name in LAUNCHERS:
                return name, *self.all_words[index + 1 :]
            if not (ASSIGNMENT.fullmatch(word) or word in ("env", "numactl") or word.startswith("-")):
                return ()  # the words behind it are not names of programs
        return ()

    @property
    def launcher(self) -> str:
        """The name of its launcher; empty if it has none."""
        return self.launched[0] if self.launched else ""

    @cached_property
    def text(self) -> str:
        """The words behind its launcher."""
        return " ".join(self.launched[1:])

    @cached_property
    def options(self) -> str:
        """The words between its launcher and Python, a shell or a container: `-n 8` behind them is for the program."""
        words = self.launched[1:]
        programs = (place for place, word in enumerate(words) if _is_program(word))
        return " ".join(words[: next(programs, len(words))])

    def has(self, names: str) -> bool:
        """Whether its launcher has one of these options (a pattern), with or without a value."""
        return re.search(rf"(?:^|\s)(?:{names})", self.options) is not None

    def number(self, names: str, between: str = "[ =]?") -> int | None:
        """The number that one of these options of its launcher has; None if it has none there."""
        match = re.search(rf"(?:^|\s)(?:{names}){between}(\d{{1,15}})(?=\s|$)", self.options)
        return int(match[1]) if match else None

    @property
    def ranks(self) -> str:
        """The number of ranks on all nodes, as the text behind the launcher's option; empty if there is no such option."""
        match = re.search(r"(?:^|\s)(?:-np?|--np|--n|--ntasks)(?:[ =]|(?=\d))(\S+)", self.options)
        return match[1].strip("\"'") if match else ""

    @property
    def nodes(self) -> int | None:
        """The nodes on which srun starts its program; None if the job decides, or another launcher starts it."""
        return self.number("-N|--nodes") if self.launcher == "srun" else None

    @property
    def ranks_per_node(self) -> int | None:
        """The ranks that its launcher starts on each node; None if the launcher has no option that says it."""
        names = "--n?tasks-per-node|--ppn|-ppn|--?npernode"
        return self.number(names if self.launcher == "srun" else f"{names}|-N")

    @cached_property
    def torchrun(self) -> Torchrun | None:
        """How it starts torchrun; None if it does not."""
        words = self.all_words
        for index, word in enumerate(words):
            if base(word) == "torchrun" or re.fullmatch(r"torch\.distributed\.(run|launch)", word):
                return Torchrun(words[:index], words[index + 1 :])
        return None

    @property
    def in_container(self) -> bool:
        """Whether its program runs in a container."""
        return any(base(word) in CONTAINERS for word in self.all_words)


def _is_program(word: str) -> bool:
    """Whether a word behind a launcher is a program that may have options with the same names."""
    names = (*SHELLS, *CONTAINERS, "torchrun", "accelerate", "$PYTHON", "${PYTHON}")
    return PYTHON.fullmatch(word) is not None or word.endswith(".py") or base(word) in names


def base(word: str) -> str:
    """The last part of a path."""
    return word.rsplit("/", 1)[-1]


def read_lines(text: str) -> Iterator[ShellLine]:
    """The logical lines of a script, in order."""
    text = text.replace("\r\n", "\n")
    place, number = 0, 1
    while place < len(text):
        start, glued = place, False
        words: list[str] = []
        while token := TOKEN.match(text, place):
            place = token.end()
            if token.lastgroup == "end":
                break
            if token.lastgroup not in ("space", "comment"):
                words.append(_unquoted(token[0]))
                glued = glued or re.search(r"\\\n[^\\]", QUOTED.sub(_kept, token[0])) is not None
        whole = text[start:place]
        yield ShellLine(number=number, text=whole.replace("\\\n", " ").strip(), words=tuple(words), glued=glued)
        number += whole.count("\n")
        document = HERE_DOCUMENT.search(whole[:10_000]) if words else None
        # The text of a here-document is no command unless a shell reads it.
        if document and not {base(word) for word in words} & {*SHELLS, "ssh"}:
            end = re.compile(rf"^[^\S\n]*{document[2]}[^\S\n]*(?:\n|\Z)", re.MULTILINE).search(text, place)
            if end:
                number += text.count("\n", place, end.end())
                place = end.end()


def _kept(match: re.Match[str]) -> str:
    """What is outside of quotes."""
    return match[0] if match[1] else ""


def _unquoted(word: str) -> str:
    def without_quotes(match: re.Match[str]) -> str:
        if match[1] is not None:
            return match[1].replace("\n", "")
        return re.sub(r"\\([\"\\])", r"\1", match[2]).replace("\\\n", " ") if match[2] is not None else str(match[3])

    return QUOTED.sub(without_quotes, FOLDER.sub("$PWD", word))


def expanded(line: ShellLine) -> tuple[str, ...]:
    """The words of a line without what is quoted from the shell, which replaces the variables in all that is left."""

    def seen(match: re.Match[str]) -> str:
        return re.sub(r"\\.", "", match[2], flags=re.DOTALL) if match[2] is not None else ""

    tokens = (token for token in TOKEN.finditer(line.text) if token.lastgroup not in ("space", "comment", "end"))
    return tuple(QUOTED.sub(seen, token[0]) for token in tokens)


def read_commands(line: ShellLine) -> Iterator[ShellCommand]:
    """The simple commands of a line, also those that it gives to `bash -c`."""
    yield from _commands(line, line.words, (), DEEPEST)


def _commands(line: ShellLine, words: Sequence[str], within: tuple[str, ...], depth: int) -> Iterator[ShellCommand]:
    simple: list[str] = []
    for word in (*words, ";"):
        if not word or not set(";&|(){}").issuperset(word):
            simple.append(word)
            continue
        while simple and (simple[0] in KEYWORDS or (len(simple) > 1 and ASSIGNMENT.fullmatch(simple[0]))):
            simple.pop(0)
        if simple:
            yield from _descend(line, tuple(simple), within, word, depth)
        simple = []


def _descend(
    line: ShellLine, words: tuple[str, ...], within: tuple[str, ...], ends: str, depth: int
) -> Iterator[ShellCommand]:
    """A command, or the commands in the text that it gives to a shell."""
    for index, word in enumerate(words[:-1] if depth else ()):
        options = iter(enumerate(words[index + 1 :], index + 1)) if base(word) in SHELLS else iter(())
        for place, option in options:
            if re.fullmatch(r"-[a-z]*c", option) and place + 1 < len(words):
                given = words[place + 3 :]  # `$0` comes first
                for inner in read_lines(words[place + 1]):
                    plain = [part for word in inner.words for part in (given if word in ("$@", "$*") else (word,))]
                    yield from _commands(line, plain, (*within, *words[:index]), depth - 1)
                return
            if not option.startswith("-"):
                break
    if words[0] == "eval" and depth and len(words) > 1:
        for inner in read_lines(" ".join(words[1:])):
            yield from _commands(line, inner.words, within, depth - 1)
        return
    yield ShellCommand(line=line, words=words, within=within, ends_with=ends)
