"""Render templates to text, with the quoting of each language. The only importer of jinja2.

Templates contain no decisions, and undefined names are errors. There are no time stamps, so equal input gives equal bytes.
"""

from __future__ import annotations

import shlex

from provision.errors import ConfigError
from provision.machine import shipped
from provision.machine.secrets_here import secrets_here


def quote_lua(text: str) -> str:
    """A Lua string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'


def quote_tcl(text: str) -> str:
    """A Tcl word: in double quotes, with everything that Tcl would substitute escaped."""
    escaped = "".join("\\" + letter if letter in '\\"$[]{};' else letter for letter in text)
    return '"' + escaped.replace("\n", "\\n").replace("\r", "\\r") + '"'


def render(template: str, **values: object) -> str:
    """The text of a shipped template (`jobs/…`, `modulefiles/…`) with these values.

    Raises:
        ConfigError: the text would contain a secret.
    """
    import jinja2

    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
        loader=jinja2.FunctionLoader(shipped.read),  # loads the templates that others extend
    )
    environment.filters.update(lua=quote_lua, tcl=quote_tcl, sh=shlex.quote)
    return refuse_secrets(template, environment.from_string(shipped.read(template)).render(**values))


def refuse_secrets(template: str, text: str) -> str:
    """The text, which others can read, if it has no secret of this shell.

    Raises:
        ConfigError: it has one.
    """
    hidden = secrets_here().hide_known(text)
    if hidden == text:
        return text
    pairs = zip(text.splitlines(), hidden.splitlines(), strict=False)
    raise ConfigError(
        f"the text of `{template}` would contain a secret of this shell, and others could read it",
        evidence=[new.strip() for old, new in pairs if old != new][:3],
        hint="take it out of the command or the profile; a program can read it from a variable, or from a file with mode 600",
    )
