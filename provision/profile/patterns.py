"""The valid forms of names and options in profiles and stacks, and the characters that no text in them may have.

Digits and letters are those of ASCII: programs that read our files know no others.
"""

from __future__ import annotations

import re

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
MODULE = re.compile(r"[A-Za-z0-9_./+][A-Za-z0-9_./+@=:-]*")
OPTION = re.compile(r"-[^\x00-\x1f]+")
TIME = re.compile(r"([0-9]+-)?[0-9]+(:[0-9]{2}){0,2}")
# A path that a shell on the site's nodes expands: it may contain `$NAME` and `${NAME}`, but nothing else special to a shell.
# A variable ends where no letter follows: if its end could be chosen, a text that does not match would take for ever.
SHELL_PATH = re.compile(
    r"(?:[A-Za-z0-9_./@%+:=-]|\$[A-Za-z_][A-Za-z0-9_]*(?![A-Za-z0-9_])|\$\{[A-Za-z_][A-Za-z0-9_]*\})+"
)
MEMORY = re.compile(r"[1-9][0-9]*[MGT]")
# Control characters, ends of lines and paragraphs, marks that reverse the order in which a text is shown, and halves of
# characters, which stand for bytes that are not UTF-8. They can end a line of a script, or hide a part of it from its reader.
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def show_controls(text: str) -> str:
    r"""The text in one line that can be printed: each of these characters as an escape sequence such as `\n`."""
    return CONTROL.sub(lambda character: character[0].encode("unicode_escape").decode(), text)
