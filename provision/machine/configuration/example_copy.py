"""Copies an example program, with a small data set, to a folder of the user."""

from __future__ import annotations

import shutil
from pathlib import Path

from provision.errors import ConfigError
from provision.machine.configuration.search_path import PACKAGE, shipped_root
from provision.machine.files.disk import disk_errors

DATA = Path(PACKAGE) / "proof" / "programs" / "data"


def copy_example(name: str, folder: str) -> tuple[str, ...]:
    """Copy the example, and the digits as its folder `data`; returns the files that were written, relative to `folder`.

    Raises:
        ConfigError: `folder` exists and is not empty.
        StoreError: the disk refuses.
    """
    target = Path(folder)
    with disk_errors(folder):
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise ConfigError(
                f"`{folder}` is not an empty folder",
                evidence=["nothing was copied: a file of yours could be replaced"],
                hint=f"`provision example {name} DIR` with a new DIR",
            )
        # Contents alone: the files of an installation may be read-only, and belong to an admin.
        for source, place in ((Path(shipped_root()) / "examples" / name, target), (DATA, target / "data")):
            place.mkdir(parents=True, exist_ok=True)
            for file in sorted(source.iterdir()):
                if file.is_file():
                    shutil.copyfile(file, place / file.name)
    return tuple(sorted(str(path.relative_to(target)) for path in target.rglob("*") if path.is_file()))
