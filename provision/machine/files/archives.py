"""Unpack an archive: only files and folders, and nothing outside of the folder that it is unpacked to."""

from __future__ import annotations

import gzip
import lzma
import shlex
import tarfile
import tempfile
import zlib
from pathlib import Path
from typing import Any

from provision.errors import CommandError
from provision.machine.files.disk import disk_error

# What the readers of archives raise for one that is cut or changed; `BadGzipFile` is an OSError without a number.
DAMAGED = (tarfile.TarError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError)


def unpack(archive: Path, folder: Path, *, without_top: bool = False) -> None:
    """Unpack an archive, without its links, to `folder`, which gets its name when it is complete.

    `without_top` leaves out the folder at the top of the archive.

    Raises:
        CommandError: the archive is damaged, or would write outside of `folder`.
        StoreError: the disk is full.
    """
    safely: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=folder.parent) as scratch, tarfile.open(archive) as tar:
            new = Path(scratch) / "new"
            new.mkdir()
            for member in tar.getmembers():
                name = member.name.partition("/")[2] if without_top else member.name
                if name and (member.isfile() or member.isdir()):
                    member.name = name
                    # Older releases of Python 3.10 and 3.11 do not have the filters of tarfile.
                    if ".." in Path(name).parts or Path(name).is_absolute():
                        raise tarfile.TarError(f"`{name}` is outside")
                    tar.extract(member, new, **safely)
            new.replace(folder)
    except DAMAGED as error:
        raise CommandError(
            f"`{archive}` cannot be unpacked",
            evidence=[str(error)],
            hint=f"`rm {shlex.quote(str(archive))}`, then run the same command again",
        ) from error
    except OSError as error:
        raise disk_error(error, folder) from error
