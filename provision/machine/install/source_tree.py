"""Files that are put right after they were unpacked: patches to a source package, and data that uv left aside."""

from __future__ import annotations

import io
import logging
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from provision.errors import CommandError
from provision.machine.files.beneath import open_own
from provision.machine.files.disk import write
from provision.model.operation import PatchFile

# What a wheel has below its data folder that belongs into site-packages (PEP 427).
SCHEMES = ("purelib", "platlib")


def apply_patches(folder: Path, patches: Sequence[PatchFile], log: Path) -> None:
    """Apply patches to what `archives.unpack` wrote, which has no links, in order. The output of patch-ng goes to the log.

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


def place_data(site_packages: Path) -> None:
    """Move the files of `*.data/purelib` and `*.data/platlib` to where they belong, also in the packages' lists of files.

    The wheel of `intel-tensorflow` 1.15.2 has its headers in `tensorflow-1.15.2.data/purelib`, and without them Horovod does not
    compile. pip takes every folder `*.data` for one of data (23.2.1, `_internal/operations/install/wheel.py`,
    `is_data_scheme_path`); uv takes the one with the wheel's own name (0.13.9).
    """
    for folder in (folder for scheme in SCHEMES for folder in site_packages.glob(f"*.data/{scheme}")):
        shutil.copytree(folder, site_packages, symlinks=True, dirs_exist_ok=True)
        start = f"{folder.parent.name}/{folder.name}/"
        for record in site_packages.glob("*.dist-info/RECORD"):
            before = record.read_text(encoding="utf-8")
            after = "".join(line.removeprefix(start) for line in before.splitlines(keepends=True))
            if after != before:
                write(record, after)
        shutil.rmtree(folder)
        if not any(folder.parent.iterdir()):
            folder.parent.rmdir()
