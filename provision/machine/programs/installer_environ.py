"""The environment in which pip, uv and virtualenv run: what their files say of the package index is in its variables."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from provision.machine.files.disk import toml_table
from provision.machine.files.trusted_files import read_regular
from provision.model.installer_settings import installer_settings

# The certificates of the system: on Debian and SUSE, Red Hat, older SUSE, Alpine.
SYSTEM_CERTIFICATES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)


def installer_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """These variables with the settings of pip's and uv's files, and without all that decides how packages are laid down."""
    settings = installer_settings(
        environ,
        pip_files=[text for path in pip_files(environ) if (text := read_text(path))],
        uv_tables=list(_tables(uv_files(environ))),
        system_certificates=next(filter(os.path.isfile, SYSTEM_CERTIFICATES), None),
    )
    if os.path.isdir(settings.get("SSL_CERT_FILE", "")):  # noqa: PTH112
        settings["SSL_CERT_DIR"] = settings.pop("SSL_CERT_FILE")
    return settings


def pip_files(environ: Mapping[str, str]) -> Iterator[str]:
    """pip's files; of two that set the same, the later one wins (`pip config debug`)."""
    named = environ.get("PIP_CONFIG_FILE")
    if named == os.devnull:
        return
    home, config = _homes(environ)
    yield from (f"{folder}/pip/pip.conf" for folder in _system(environ))
    yield "/etc/pip.conf"
    if not (named and os.path.exists(named)):  # noqa: PTH110
        yield from (f"{home}/.pip/pip.conf", f"{config}/pip/pip.conf")
    yield f"{sys.prefix}/pip.conf"
    if named:
        yield named


def uv_files(environ: Mapping[str, str]) -> Iterator[str]:
    """uv's files; of two that set the same, the earlier one wins. Those of the working folder belong to other projects."""
    if environ.get("UV_CONFIG_FILE"):
        yield environ["UV_CONFIG_FILE"]
    elif environ.get("UV_NO_CONFIG", "").lower() not in ("1", "true", "yes", "on"):
        yield f"{_homes(environ)[1]}/uv/uv.toml"
        yield from (f"{folder}/uv/uv.toml" for folder in _system(environ))
        yield "/etc/uv/uv.toml"


def read_text(path: str) -> str:
    """The text of a file, or nothing: a program that needs the file reports itself that it cannot be read."""
    try:
        return read_regular(path)[0].decode("utf-8", "replace")
    except OSError:
        return ""


def _homes(environ: Mapping[str, str]) -> tuple[str, str]:
    """The user's home, and the folder of the user's files of configuration."""
    home = environ.get("HOME") or os.path.expanduser("~")
    return home, environ.get("XDG_CONFIG_HOME") or f"{home}/.config"


def _system(environ: Mapping[str, str]) -> list[str]:
    """The folders of the system's files of configuration."""
    return [folder for folder in (environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":") if folder]


def _tables(paths: Iterable[str]) -> Iterator[Mapping[str, Any]]:
    for path in paths:
        with contextlib.suppress(ValueError):  # uv itself stops at such a file, which does not concern an environment
            yield toml_table(read_text(path))
