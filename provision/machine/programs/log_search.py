"""Find the logs that a user means with a folder or the ID of a job."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

# Names of logs: of programs, of Slurm and Cobalt (`.out`, `.error`), of PBS and SGE (`train.o123`), and compressed ones.
LOG_NAME = re.compile(
    r"(?:\.(?:log|out|err|output|error|stdout|stderr|txt)|\.[oe]\d+(?:[.-]\d+)?)(?:\.(?:gz|bz2|xz))?$"
)
# Of a folder with more logs, the newest are read.
MOST_LOGS = 30


def logs_in(folder: Path, containing: str = "") -> list[Path]:
    """The logs in a folder and in the folders directly below it, the newest first.

    A file stands for itself. `containing` is a text that the name must contain as a whole number: the ID of a job.
    """
    if not folder.is_dir():
        return [folder]
    name = re.compile(rf"(?<!\d){re.escape(containing)}(?!\d)")
    found = [
        path for path in _files((folder, *_folders(folder))) if LOG_NAME.search(path.name) and name.search(path.name)
    ]
    return sorted(found, key=lambda path: -path.stat().st_mtime)[:MOST_LOGS]


def _folders(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.iterdir()) if path.is_dir() and not path.is_symlink()]


def _files(folders: Iterable[Path]) -> Iterable[Path]:
    for folder in folders:
        try:
            yield from (path for path in sorted(folder.iterdir()) if path.is_file())
        except PermissionError:
            continue
