"""What `provision --help` prints: made from data, because argparse would take longer than everything else."""

from __future__ import annotations

from collections.abc import Sequence

from provision.commands import GROUPS, PAGES, VERBS
from provision.machine.programs.shell import columns

USAGE = "usage: provision VERB [OPTIONS]"
PURPOSE = "TensorFlow + Horovod environments for HPC sites, proved before users can load them."
LAST = (
    "More: `provision help users` (data, venv, Jupyter), `provision help makers` (stacks, Spack), `provision help VERB`.",
    "Exit codes: 0 done, 1 failed, 2 wrong request, 3 unknown failure in a log, 4 job left running, 130 interrupted.",
)


def help_here(page: str = "") -> str:
    """The help, or a page of more verbs, for the width of this terminal; `all`: the help with the verbs of all pages."""
    width = columns()
    if page in PAGES:
        return "\n".join(
            [USAGE, "", *group_lines(*PAGES[page], width), "", "`provision --help` lists the other verbs."]
        )
    lines = [USAGE, "", *fold(PURPOSE, width, 0)]
    for title, verbs in (*GROUPS, *PAGES.values()) if page == "all" else GROUPS:
        lines += ["", *group_lines(title, verbs, width)]
    return "\n".join([*lines, "", *(part for line in LAST for part in fold(line, width, 0))])


def group_lines(title: str, verbs: Sequence[tuple[str, str]], width: int) -> list[str]:
    """A title with its verbs."""
    indent = 2 + max(len(verb) for verb, _ in VERBS) + 2
    lines = fold(f"{title}:", width, 0)
    for verb, purpose in verbs:
        first, *more = fold(purpose, width, indent)
        lines += [f"  {verb}".ljust(indent) + first.lstrip(), *more]
    return lines


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
