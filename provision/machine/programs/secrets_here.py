"""The secrets of this run: what its variables, and the configuration files of pip, uv and netrc, have to hide.

Text leaves the tool at few places, and each of them hides: `run.stream` (logs, evidence, progress), `run.capture` (what
a program complains), `console.say`, the envelope and the text of a verb, errors, events, and templates, which refuse.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterator, Mapping

from provision.machine.trusted_files import read_regular
from provision.model.redaction import Secrets, find_secrets


def secrets_in(environ: Mapping[str, str]) -> Secrets:
    """The secrets of a program that runs with these variables, beside those of this process."""
    return _find(frozenset({**os.environ, **environ}.items()))


def secrets_here() -> Secrets:
    """The secrets of this process."""
    return _find(frozenset(os.environ.items()))


@functools.lru_cache(maxsize=8)
def _find(variables: frozenset[tuple[str, str]]) -> Secrets:
    environ = dict(variables)
    return find_secrets(environ, [text for path in configuration_files(environ) if (text := _read(path))])


def configuration_files(environ: Mapping[str, str]) -> Iterator[str]:
    """The files in which pip, uv and netrc may name an index, a proxy or a password."""
    home = environ.get("HOME") or os.path.expanduser("~")
    config = environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
    yield from filter(None, (environ.get("PIP_CONFIG_FILE"), environ.get("UV_CONFIG_FILE"), environ.get("NETRC")))
    for folder in ("/etc", "/etc/xdg/pip", f"{home}/.pip", f"{config}/pip", sys.prefix):
        yield f"{folder}/pip.conf"
    yield from ("/etc/uv/uv.toml", f"{config}/uv/uv.toml", f"{home}/.netrc")


def _read(path: str) -> str:
    """The text of a file, or nothing: a program that needs the file reports itself that it cannot be read."""
    try:
        return read_regular(path)[0].decode("utf-8", "replace")
    except OSError:
        return ""
