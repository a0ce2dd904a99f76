"""Data folders of wheels that uv left as they are, because they have the name of another package.

The wheel of `intel-tensorflow` 1.15.2 has its headers in `tensorflow-1.15.2.data/purelib`, and without them Horovod does not
compile. pip takes every folder `*.data` for one of data (23.2.1, `_internal/operations/install/wheel.py`,
`is_data_scheme_path`); uv takes the one with the wheel's own name (0.13.9).
"""

from __future__ import annotations

import os
from pathlib import Path

from provision.machine.files.disk import write

# What a wheel has below its data folder that belongs into site-packages (PEP 427).
SCHEMES = ("purelib", "platlib")


def place_data(site_packages: Path) -> None:
    """Move the files of `*.data/purelib` and `*.data/platlib` to where they belong, also in the packages' lists of files."""
    for data in site_packages.glob("*.data"):
        for scheme in SCHEMES:
            _move_all(data / scheme, site_packages)
            for record in site_packages.glob("*.dist-info/RECORD"):
                before = record.read_text(encoding="utf-8")
                after = "".join(
                    line.removeprefix(f"{data.name}/{scheme}/") for line in before.splitlines(keepends=True)
                )
                if after != before:
                    write(record, after)
        if not any(data.iterdir()):
            data.rmdir()


def _move_all(folder: Path, into: Path) -> None:
    """Move the files below a folder to the same places below another one; the folder is gone afterwards."""
    for place, _, names in os.walk(folder, topdown=False):
        target = into / Path(place).relative_to(folder)
        target.mkdir(parents=True, exist_ok=True)
        for name in names:
            (Path(place) / name).replace(target / name)
        Path(place).rmdir()
