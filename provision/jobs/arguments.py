"""The arguments of a training script, from one text in the notation of a shell. Pure.

The node expands `$NAME` and `${NAME}`, as in the double quotes of a shell, and nothing else: no commands, no patterns.
"""

from __future__ import annotations

import re

from provision.errors import ConfigError
from provision.model.quoting import Code, bash, quote_inside, variable

REFERENCE = re.compile(r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})")
NOTHING = Code("")
# A backslash in double quotes of a shell escapes only these.
ESCAPED = '$`"\\'
HINT = "`--arguments '--data-dir=$PROVISION_DATA --epochs 3'`"


def split_arguments(text: str) -> tuple[str, ...]:
    """The words of the text. One with variables is code of bash, with the variables in it; the others are plain texts.

    Raises:
        ConfigError: a quotation is not closed, or a word asks for more than variables.
    """
    words: list[list[str]] = []
    quote, at, started = "", 0, False
    while at < len(text):
        letter = text[at]
        at += 1
        if not quote and letter in " \t\n":
            started = False
            continue
        if not started:
            words.append([])
            started = True
        if letter == quote or (not quote and letter in "'\""):
            quote = "" if quote else letter
            continue
        if letter == "\\" and quote != "'" and (not quote or text[at : at + 1] in [*ESCAPED]):
            if at == len(text):
                raise _not_words("there is nothing after the last backslash")
            letter, at = text[at], at + 1
        elif letter == "$" and quote != "'":
            reference = REFERENCE.match(text, at - 1)
            if reference:
                words[-1].append(bash("${%s}", variable(reference[1] or reference[2])))
                at = reference.end()
                continue
            if text[at : at + 1] in ("(", "{"):
                raise _not_words(f"`{text[at - 1 : at + 20]}` is neither `$NAME` nor `${{NAME}}`")
        elif letter == "`" and quote != "'":
            raise _not_words("a backquote starts a command, which the job does not run")
        words[-1].append(letter)
    if quote:
        raise _not_words("a quotation is not closed")
    return tuple(_word(parts) for parts in words)


def _word(parts: list[str]) -> str:
    """A word of these letters and variables."""
    if not any(isinstance(part, Code) for part in parts):
        return "".join(parts)
    inside = NOTHING.join(part if isinstance(part, Code) else quote_inside(part) for part in parts)
    return bash('"%s"', inside)


def _not_words(why: str) -> ConfigError:
    return ConfigError(
        f"`--arguments` cannot be split into words: {why}",
        evidence=["put what is not to be expanded in single quotes"],
        hint=HINT,
    )
