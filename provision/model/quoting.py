"""The one way of a value into bash, a directive, a comment, Lua, Tcl, Python, JSON, CMake, HTML and linker scripts. Pure.

Each function takes any text, and returns `Code`: text in the language of the file that it goes to. Templates print nothing else
(`machine/rendering/render.py`). Other rooms make code of constants, or with `bash`; a test of the house checks that they do.
"""

from __future__ import annotations

import html
import json
import re
import shlex
from collections.abc import Iterable
from typing import TYPE_CHECKING, SupportsIndex

from provision.errors import ConfigError
from provision.profile.patterns import CONTROL, SHELL_PATH, show_controls

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# These characters mean nothing to bash, Python, Lua and Tcl, inside and outside of quotes.
PLAIN = re.compile(r"[A-Za-z0-9_.,:/@%+=-]+")
# Without what csh expands or splits even in single quotes.
CSH = re.compile(r"[^'!\\\x00-\x1f\x7f\ud800-\udfff]*")
# What no file of ours can contain: the end of a C string, and bytes that are not UTF-8.
UNWRITABLE = re.compile("[\x00\ud800-\udfff]")


class Code(str):
    """Text that is already in the language of the file that it goes to."""

    __slots__ = ()

    def join(self, parts: Iterable[str], /) -> Code:
        """The parts, which must be code too, with this text between them."""
        return Code(super().join(map(check_code, parts)))

    def ljust(self, width: SupportsIndex, fill: str = " ", /) -> Code:
        """The code with spaces after it."""
        return Code(super().ljust(width, fill))


def check_code(text: object) -> Code:
    """Code as it is; the filter `code` of templates.

    Raises:
        TypeError: it is another text, which has to be quoted.
    """
    if not isinstance(text, Code):
        raise TypeError(f"{text!r} is not code: it needs the filter of its language")
    return text


def _writable(text: object) -> str:
    whole = str(text)
    if UNWRITABLE.search(whole):
        raise ConfigError(
            f"`{show_controls(whole)}` cannot be written to a script",
            evidence=["it contains the character NUL, or bytes that are not UTF-8"],
            hint="use paths, options and variables that are UTF-8",
        )
    return whole


def quote_sh(text: object) -> Code:
    """One word of a shell."""
    return Code(shlex.quote(_writable(text)))


def quote_fish(text: object) -> Code:
    """One word of fish."""
    escaped = re.sub(r"([\\'])", r"\\\1", _writable(text))
    return Code(f"'{escaped}'")


def quote_csh(text: object) -> Code:
    """One word of csh and tcsh.

    Raises:
        ConfigError: it has a character that csh expands or splits even in single quotes.
    """
    return Code(f"'{_matching(CSH, text, 'a word that csh leaves as it is')}'")


def word(text: str) -> Code:
    """One word of a shell, if it is not code already."""
    return text if isinstance(text, Code) else quote_sh(text)


def words(texts: Iterable[str]) -> Code:
    """Words of a shell, with spaces between them."""
    return Code(" ").join(map(word, texts))


def bash(form: str, *values: str) -> Code:
    """Bash with a word for each `%s` of `form`, as in `bash("module load %s", name)`. `form` is a constant."""
    return Code(form % tuple(map(word, values)))


def quote_inside(text: object) -> Code:
    """Text for the inside of double quotes of a shell, which expands nothing in it."""
    return Code(re.sub(r'([\\"$`])', r"\\\1", _writable(text)))


def shell_path(text: object, *, unset_is_empty: bool = False) -> Code:
    """A path, for the inside of double quotes: the node expands its `$NAME` and `${NAME}`, and nothing else.

    A script with `set -u` stops at a variable that is not set, unless `unset_is_empty`, which is for `${NAME}` only.

    Raises:
        ConfigError: it has characters that mean more to a shell.
    """
    whole = str(text)
    if not SHELL_PATH.fullmatch(whole):
        raise ConfigError(
            f"{whole!r} cannot be the path of a script",
            evidence=["such a path has letters, digits, `_./@%+:=-`, `$NAME` and `${NAME}`"],
            hint="use a path with only these characters, for example that of a link",
        )
    return Code(re.sub(r"\$\{(\w+)\}", r"${\1:-}", whole) if unset_is_empty else whole)


def variable(name: object) -> Code:
    """The name of a variable.

    Raises:
        ConfigError: it is not such a name.
    """
    return _matching(VARIABLE, name, "the name of a variable")


def plain(value: object) -> Code:
    """A number, a version, a name or an address without any character that means something to a language.

    Raises:
        ConfigError: it has other characters.
    """
    return _matching(PLAIN, value, "a plain value: letters, digits and `_.,:/@%+=-`")


def _matching(pattern: re.Pattern[str], value: object, what: str) -> Code:
    text = str(value)
    if not pattern.fullmatch(text):
        raise ConfigError(f"{text!r} is not {what}", hint="edit the profile, the stack or the option that contains it")
    return Code(text)


def comment(text: object) -> Code:
    """A part of a comment of one line."""
    return Code(show_controls(str(text)))


def comment_tcl(text: object) -> Code:
    """A part of a comment of Tcl, in which a backslash at the end of the line would continue the comment."""
    return Code(comment(text).replace("\\", "\\\\"))


def quote_html(text: object) -> Code:
    """Text of a page in HTML, also for the value of an attribute in quotes."""
    return Code(html.escape(show_controls(str(text))))


def write_xml(element: Element) -> Code:
    """An element of XML, whose library has quoted every text in it."""
    from xml.etree import ElementTree

    return Code(ElementTree.tostring(element, encoding="unicode"))


def quote_markdown(text: object) -> Code:
    """Text of a page in Markdown, also for a cell of a table: no character has a meaning for it, and there is no HTML."""
    return Code(re.sub(r"([\\`*_\[\]<>|&])", r"\\\1", show_controls(str(text))))


def directive(prefix: str, option: str) -> Code:
    """A line for the scheduler, such as `#SBATCH --nodes=2`. The scheduler's module quotes the values of the option.

    Raises:
        ConfigError: a character of the option would end the line.
    """
    if CONTROL.search(option):
        raise ConfigError(
            f"{option!r} cannot be a directive of a job",
            evidence=["it contains a line break or another control character"],
            hint="edit the profile, or the option of the command, that contains it",
        )
    return Code(f"{prefix} {option}")


def quote_lua(text: object) -> Code:
    """A Lua string."""
    escaped = _writable(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return Code(f'"{escaped}"')


def quote_tcl(text: object) -> Code:
    """A Tcl word: in double quotes, with everything that Tcl would substitute escaped."""
    escaped = "".join("\\" + letter if letter in '\\"$[]{};' else letter for letter in _writable(text))
    # Tcl reads a file only up to the first Ctrl-Z.
    for letter, written in (("\n", "\\n"), ("\r", "\\r"), ("\x1a", "\\u001a")):
        escaped = escaped.replace(letter, written)
    return Code(f'"{escaped}"')


def quote_python(text: object) -> Code:
    """A Python string, which is in one line."""
    return Code(json.dumps(_writable(text), ensure_ascii=False))


def quote_cmake(text: object) -> Code:
    """The inside of a quoted argument of CMake; several of them, with a semicolon between them, are a list."""
    escaped = re.sub(r'([\\"])', r"\\\1", _writable(text))
    return Code(re.sub(r"\$(?=\w*\{)|@(?=[^@]*@)", r"\\\g<0>", escaped))


def quote_linker(text: object) -> Code:
    """A file name in a linker script, which has no escape sequences.

    Raises:
        ConfigError: the linker would read it as more than a name.
    """
    name = _writable(text)
    if '"' in name or CONTROL.search(name):
        raise ConfigError(
            f"{name!r} cannot be linked", evidence=["a linker script has no way to write this name"], hint="rename it"
        )
    return Code(f'"{name}"')


def quote_json(value: object) -> Code:
    """A JSON document, indented."""
    return Code(json.dumps(value, indent=1))


def printf_format(text: str) -> str:
    """A format for `printf` that prints this text; it becomes a word of bash with `quote_sh`."""
    return text.replace("\\", "\\\\").replace("%", "%%")
