"""What `provision --help` prints: made from data, because argparse would take longer than everything else."""

from __future__ import annotations

from provision.commands import GROUPS, VERBS
from provision.machine.programs.shell import columns

USAGE = "usage: provision VERB [OPTIONS]"
PURPOSE = "TensorFlow + Horovod environments for HPC sites, proved before users can load them."
LAST = (
    "`provision help VERB` prints the options of a verb; `provision --version` prints the version.",
    "Exit codes: 0 done, 1 failed, 2 wrong request, 3 unknown failure in a log, 4 job left running, 130 interrupted.",
)


def help_here() -> str:
    """The help, for the width of this terminal."""
    return help_text(columns())


def help_text(width: int) -> str:
    """What `provision --help` prints, no line longer than this many columns."""
    indent = 2 + max(len(verb) for verb, _ in VERBS) + 2
    lines = [USAGE, "", *fold(PURPOSE, width, 0)]
    for title, verbs in GROUPS:
        lines += ["", *fold(f"{title}:", width, 0)]
        for verb, purpose in verbs:
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
