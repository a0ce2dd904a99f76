"""Which venv a folder is, if `provision venv create` made it."""

from __future__ import annotations

from pathlib import Path

from provision.errors import ConfigError
from provision.machine.files.disk import read_given
from provision.model.own_venv import Beneath, read_beneath


def read_venv(folder: Path) -> Beneath:
    """What a venv that `create` made was made on.

    Raises:
        ConfigError: it is not such a venv.
    """
    text = read_given(str(folder / "pyvenv.cfg"), "file")
    try:
        return read_beneath(text)
    except ValueError as error:
        raise not_made_here(folder, error) from error


def not_made_here(folder: Path, error: Exception) -> ConfigError:
    """The error for a folder that is not a venv that `create` made."""
    return ConfigError(
        f"`{folder}` was not made by `provision venv create`",
        evidence=[str(error)],
        hint="`provision venv create DIR --on loaded` makes one",
    )
