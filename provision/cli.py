"""The command line: find the verb among the words and run it.

Help and version are printed from data; argparse is imported only for a verb.

Exit codes: 0 done or nothing to do; 1 failed; 2 the request or a file is wrong, nothing was tried; 4 a job was left
running (`--no-wait`); 130 interrupted. stdout is data, stderr is for people.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from provision import __version__
from provision.commands import VERBS

USAGE = "usage: provision VERB [OPTIONS]"
PURPOSE = "TensorFlow + Horovod environments for HPC sites, proved before users can load them."
LAST = (
    "`provision help VERB` prints the options of a verb; `provision --version` prints the version.",
    "Exit codes: 0 done, 1 failed, 2 wrong request, 4 job left running, 130 interrupted.",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["__complete"]:
        from provision.commands.shared.names import names_of

        for name in names_of(*words[1:3]):
            print(name)
        return 0
    if not words:
        print(help_text(columns()), file=sys.stderr)
        return 2
    if words[0] in ("-h", "--help") or words == ["help"]:
        print(help_text(columns()))
        return 0
    if words[0] in ("-V", "--version") or words == ["version"]:
        print(f"provision {__version__}")
        return 0
    if words[0] == "help":
        words = [*words[1:], "--help"]
    from provision.commands.shared.running import run_verb

    verb, rest = verb_first(words)
    return run_verb(verb, rest)


def verb_first(words: Sequence[str]) -> tuple[str, list[str]]:
    """The verb among these words, and the others: options may stand before it (`provision --json list`)."""
    verbs = {verb for verb, _ in VERBS}
    at = 0
    if words[0].startswith("-"):
        names = [index for index, word in enumerate(words) if not word.startswith("-")]
        at = next((index for index in names if words[index] in verbs), names[0] if names else 0)
    return words[at], [*words[:at], *words[at + 1 :]]


def help_text(width: int) -> str:
    """What `provision --help` prints, no line longer than this many columns."""
    indent = 2 + max(len(verb) for verb, _ in VERBS) + 2
    lines = [USAGE, "", *fold(PURPOSE, width, 0), "", "verbs:"]
    for verb, purpose in VERBS:
        first, *more = fold(purpose, width, indent)
        lines += [f"  {verb}".ljust(indent) + first.lstrip(), *more]
    for line in LAST:
        lines += ["", *fold(line, width, 0)] if line is LAST[0] else fold(line, width, 0)
    return "\n".join(lines)


def fold(text: str, width: int, indent: int) -> list[str]:
    """A text in lines that fit, broken between words (textwrap would cost as much as everything else at start-up)."""
    lines = [" " * indent]
    for word in text.split():
        begun = len(lines[-1]) > indent
        if begun and len(lines[-1]) + 1 + len(word) > width:
            lines.append(" " * indent + word)
        else:
            lines[-1] += f" {word}" if begun else word
    return lines


def columns() -> int:
    """The width of the terminal, as shutil has it: from COLUMNS, else from the terminal, else 80."""
    try:
        return int(os.environ["COLUMNS"]) or 80
    except (KeyError, ValueError):
        pass
    try:
        return os.get_terminal_size().columns or 80
    except (OSError, ValueError):
        return 80
