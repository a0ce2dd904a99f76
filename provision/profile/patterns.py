"""The valid forms of names and options in profiles and stacks, and the characters that no text in them may have.

Digits and letters are those of ASCII: programs that read our files know no others.
"""

from __future__ import annotations

import re
from typing import Annotated


class Form:
    """A form that a text must have, and the words that describe it to a person. It is compiled when it is first used."""

    def __init__(self, pattern: str, words: str = "") -> None:
        self.pattern, self.words = pattern, words or pattern

    def fullmatch(self, text: str) -> re.Match[str] | None:
        """The match of the whole text; None if it does not have the form."""
        return re.fullmatch(self.pattern, text)


NAME = Form(r"[A-Za-z0-9][A-Za-z0-9_.+-]*", "of a name: letters, digits and `_ . + -`, without blanks")
MODULE = Form(r"[A-Za-z0-9_./+][A-Za-z0-9_./+@=:-]*", "of a module, such as `gcc/12.2.0`")
# Words that bash takes as they are.
COMMAND = Form(
    r"[A-Za-z0-9_./@%+:=,-]+(?: [A-Za-z0-9_./@%+:=,-]+)*", "of a command of plain words, such as `conda activate`"
)
OPTION = Form(r"-[^\x00-\x1f]+", "of an option, such as `--export=ALL`")
TIME = Form(r"([0-9]{1,9}-)?[0-9]{1,9}(:[0-9]{2}){0,2}", "of a time, such as `00:30:00` or `2-00:00:00`")
# A path that a shell on the site's nodes expands: it may contain `$NAME` and `${NAME}`, but nothing else special to a shell.
# A variable ends where no letter follows: if its end could be chosen, a text that does not match would take for ever.
SHELL_PATH = Form(
    r"(?:[A-Za-z0-9_./@%+:=-]|\$[A-Za-z_][A-Za-z0-9_]*(?![A-Za-z0-9_])|\$\{[A-Za-z_][A-Za-z0-9_]*\})+",
    "of a path: letters, digits, `_ . / @ % + : = -` and variables such as `$USER`",
)
FOLDER = Form(r"/[A-Za-z0-9_./@%+=-]*", "of a folder, such as `/opt/nccl/lib`: letters, digits and `_ . / @ % + = -`")
MEMORY = Form(r"[1-9][0-9]*[MGT]", "of an amount of memory, such as `4G`")
Name = Annotated[str, NAME]
Module = Annotated[str, MODULE]
Option = Annotated[str, OPTION]
Command = Annotated[str, COMMAND]
Folder = Annotated[str, FOLDER]
Time = Annotated[str, TIME]
ShellPath = Annotated[str, SHELL_PATH]
# Control characters, ends of lines and paragraphs, marks that reverse the order in which a text is shown, and halves of
# characters, which stand for bytes that are not UTF-8. They can end a line of a script, or hide a part of it from its reader.
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def show_controls(text: str, keep: str = "") -> str:
    r"""The text in one line that can be printed: each of these characters, but those of `keep`, as an escape such as `\n`."""
    return CONTROL.sub(lambda found: found[0] if found[0] in keep else found[0].encode("unicode_escape").decode(), text)
