"""Render templates to text, with the quoting of each language. The only importer of jinja2.

Templates contain no decisions, and undefined names are errors. There are no time stamps, so equal input gives equal bytes.
"""

from __future__ import annotations

import shlex

from provision.machine import shipped


def quote_lua(text: str) -> str:
    """A Lua string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'


def quote_tcl(text: str) -> str:
    """A Tcl word: in double quotes, with everything that Tcl would substitute escaped."""
    escaped = "".join("\\" + letter if letter in '\\"$[]{};' else letter for letter in text)
    return '"' + escaped.replace("\n", "\\n").replace("\r", "\\r") + '"'


def render(template: str, **values: object) -> str:
    """The text of a shipped template (`jobs/…`, `modulefiles/…`) with these values."""
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
    return environment.from_string(shipped.read(template)).render(**values)
