"""Unpack a source package, and apply patches to it."""

from __future__ import annotations

import gzip
import io
import logging
import lzma
import re
import shlex
import tarfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from provision.errors import CommandError
from provision.machine.files.disk import disk_error
from provision.machine.files.own_files import open_own
from provision.model.operation import PatchFile

# What the readers of archives raise for one that is cut or changed; `BadGzipFile` is an OSError without a number.
DAMAGED = (tarfile.TarError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError)


def unpack(archive: Path, folder: Path) -> None:
    """Unpack the files of a source package into `folder`, without the top folder of the archive, and without links.

    Raises:
        CommandError: the archive is damaged, or would write outside of `folder`.
        StoreError: the disk is full.
    """
    safely: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    try:
        folder.mkdir(parents=True)
        with tarfile.open(archive) as tar:
            for member in tar.getmembers():
                _, _, name = member.name.partition("/")
                if name and (member.isfile() or member.isdir()):
                    member.name = name
                    # Older releases of Python 3.11 do not have the filters of tarfile.
                    if ".." in Path(name).parts or Path(name).is_absolute():
                        raise tarfile.TarError(f"`{name}` is outside")
                    tar.extract(member, folder, **safely)
    except DAMAGED as error:
        raise CommandError(
            f"`{archive}` cannot be unpacked",
            evidence=[str(error)],
            hint=f"`rm {shlex.quote(str(archive))}`, then build again",
        ) from error
    except OSError as error:
        raise disk_error(error, folder) from error


def apply_patches(folder: Path, patches: Sequence[PatchFile], log: Path) -> None:
    """Apply patches to what `unpack` wrote, which has no links, in order. The output of patch-ng goes to the log.

    Raises:
        CommandError: a patch does not apply; the error names it.
    """
    import patch_ng

    output = io.StringIO()
    handler = logging.StreamHandler(output)
    patch_ng.logger.addHandler(handler)
    try:
        for patch in patches:
            output.write(f"$ patch {patch.name}\n")
            # Remove a/ and b/ here: patch-ng 1.19 strips one folder too many from a new file.
            text = re.sub(r"^(---|\+\+\+) [ab]/", r"\1 ", patch.text, flags=re.MULTILINE)
            parsed = patch_ng.fromstring(text.encode())
            if not parsed or parsed.errors or not parsed.apply(root=str(folder)):
                raise CommandError(
                    f"our patch `{patch.name}` does not apply to the source",
                    evidence=[patch.subject, *output.getvalue().splitlines()[-6:]],
                    hint="the patch was made for another release of Horovod: see the head of the patch",
                    log=str(log),
                )
    finally:
        patch_ng.logger.removeHandler(handler)
        with open_own(log, append=True) as file:
            file.write(output.getvalue())
