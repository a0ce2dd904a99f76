"""The folder of the pages that `provision report` writes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from provision.errors import ConfigError
from provision.machine.files.disk import remove, write

KINDS = ("html", "md")


def write_folder(folder: Path, texts: Mapping[str, str]) -> Path:
    """Write the pages, and remove those of environments that are gone; returns the path of the first page.

    Raises:
        ConfigError: the folder has other files, so it is not one of ours.
        StoreError: it cannot be written.
    """
    first = next(iter(texts))
    kind = first.rpartition(".")[2]
    if folder.is_dir():
        foreign = sorted(
            path.name for path in folder.iterdir() if path.name not in ("environments", *(f"index.{k}" for k in KINDS))
        )
        if foreign:
            raise ConfigError(
                f"`{folder}` has other files than a report",
                evidence=foreign[:4],
                hint=f"`provision report {folder / 'report'}`",
            )
    for old in sorted((folder / "environments").glob(f"*.{kind}")):
        if f"environments/{old.name}" not in texts:
            remove(old)
    for name in reversed(list(texts)):  # the first page last: it links to the others
        write(folder / name, texts[name])
    return folder / first
