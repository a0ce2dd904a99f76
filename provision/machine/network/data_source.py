"""A data set that a user copies to a site: its size, and whether this machine sees where it goes."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path

from provision.errors import ConfigError
from provision.machine.files.disk import is_file

BLOCK = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSource:
    """A folder or file to copy, measured. Each file and folder counts as whole blocks, as on a disk."""

    path: str
    is_folder: bool
    bytes: int
    files: int


def measure(path: str) -> DataSource:
    """Measure a folder or file; links are not followed.

    Raises:
        ConfigError: it does not exist, is empty, or cannot be read.
    """
    source = Path(path)
    wrong: list[str] = []
    paths = [source] if is_file(path) else []
    for folder, folders, names in () if paths else os.walk(source, onerror=lambda error: wrong.append(str(error))):
        paths += [Path(folder, name) for name in (*folders, *names)]
    size = 0
    for inner in paths:
        try:
            size += -(-inner.lstat().st_size // BLOCK) * BLOCK
        except OSError as error:
            wrong.append(str(error))
    if wrong or not paths:
        raise ConfigError(
            f"the data `{source}` cannot be read" if wrong else f"there is nothing in `{source}`",
            evidence=wrong[:6],
            hint=f"`ls -l {shlex.quote(str(source))}`",
        )
    return DataSource(path=str(source), is_folder=source.is_dir(), bytes=size, files=len(paths))


def sees(scratch: str) -> bool:
    """Whether this machine sees a site's scratch: its variables are set and the folder that contains it exists."""
    path = os.path.expandvars(scratch)
    return "$" not in path and os.path.isdir(os.path.dirname(path))  # noqa: PTH112
