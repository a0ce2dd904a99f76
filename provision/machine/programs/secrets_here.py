"""The secrets of this run: what its variables, and the configuration files of pip, uv and netrc, have to hide.

Text leaves the tool at few places, and each of them hides: `run.stream` (logs, evidence, progress), `run.capture` (what
a program complains), `console.say`, the envelope and the text of a verb, errors, events, and templates, which refuse.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Mapping

from provision.machine.programs.installer_environ import pip_files, read_text, uv_files
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
    return find_secrets(environ, [text for path in configuration_files(environ) if (text := read_text(path))])


def configuration_files(environ: Mapping[str, str]) -> Iterator[str]:
    """The files in which pip, uv and netrc may name an index, a proxy or a password."""
    yield from pip_files(environ)
    yield from uv_files(environ)
    yield from filter(None, (environ.get("NETRC"), f"{environ.get('HOME') or os.path.expanduser('~')}/.netrc"))
