"""The secrets of this run: what its variables, and the configuration files of pip, uv and netrc, have to hide.

Text leaves the tool at few places, and each of them hides: `run.stream` (logs, evidence, progress), `run.capture` (what
a program complains), `console.say`, the envelope and the text of a verb, errors, events, and templates, which refuse.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping

from provision.machine.programs.installer_environ import pip_files, read_text, uv_files
from provision.model.redaction import Secrets, find_secrets


def secrets_here(of_program: Mapping[str, str] | None = None) -> Secrets:
    """The secrets of this process, and those in the variables of a program that it starts."""
    return _find(frozenset({**os.environ, **(of_program or {})}.items()))


@functools.lru_cache(maxsize=8)
def _find(variables: frozenset[tuple[str, str]]) -> Secrets:
    environ = dict(variables)
    netrc = environ.get("NETRC") or f"{environ.get('HOME') or os.path.expanduser('~')}/.netrc"
    return find_secrets(environ, list(map(read_text, (*pip_files(environ), *uv_files(environ), netrc))))
