"""Apply patches to an unpacked source package."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Sequence
from pathlib import Path

from provision.errors import CommandError
from provision.machine.files.own_files import open_own
from provision.model.operation import PatchFile


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
