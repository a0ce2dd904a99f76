"""A source package on disk: unpacked, and patched."""

from __future__ import annotations

import io
import logging
import re
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from provision.errors import CommandError
from provision.machine.disk import disk_error
from provision.model.plan import PatchFile


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a source package into `folder`, without the one folder that everything in it stands in.

    Raises:
        CommandError: it is damaged, or would write outside of `folder`.
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
                    # Not left to tarfile's filters: a Python 3.11 may be older than they are.
                    if ".." in Path(name).parts or Path(name).is_absolute():
                        raise tarfile.TarError(f"`{name}` is outside")
                    tar.extract(member, folder, **safely)
    except tarfile.TarError as error:
        raise CommandError(
            f"`{archive}` cannot be unpacked", evidence=[str(error)], hint=f"`rm {archive}`, then build again"
        ) from error
    except OSError as error:
        raise disk_error(error, folder) from error


def apply_patches(folder: Path, patches: Sequence[PatchFile], log: Path) -> None:
    """Apply patches to an unpacked source, in order. What patch-ng says goes to the log.

    Raises:
        CommandError: one does not fit; it is named, with what it would change.
    """
    import patch_ng

    words = io.StringIO()
    handler = logging.StreamHandler(words)
    patch_ng.logger.addHandler(handler)
    try:
        for patch in patches:
            words.write(f"$ patch {patch.name}\n")
            # Without a/ and b/ to strip: patch-ng 1.19 strips a folder too many from a file that a patch makes.
            text = re.sub(r"^(---|\+\+\+) [ab]/", r"\1 ", patch.text, flags=re.MULTILINE)
            parsed = patch_ng.fromstring(text.encode())
            if not parsed or parsed.errors or not parsed.apply(root=str(folder)):
                raise CommandError(
                    f"the source does not fit our patch `{patch.name}`",
                    evidence=[patch.subject, *words.getvalue().splitlines()[-6:]],
                    hint="the patch was made for another release of Horovod: see the head of the patch",
                    log=str(log),
                )
    finally:
        patch_ng.logger.removeHandler(handler)
        with log.open("a", encoding="utf-8") as file:
            file.write(words.getvalue())
