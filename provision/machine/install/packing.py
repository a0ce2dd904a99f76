"""Pack an environment: one image of its files, which ranks mount in their place, and the program that mounts it.

The image holds the environment without the tool's records. The base Python gets an image of its own where it is on a
shared file system too; one on the file system of `/` is local on every node.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from provision.errors import CommandError
from provision.machine.files.disk import sha256_of, write, write_json
from provision.machine.programs.failed_program import failed_program
from provision.machine.programs.run import stream
from provision.machine.rendering.render import render, template_sha256
from provision.machine.root.image_only import described_images, is_image_only
from provision.machine.root.store import Store
from provision.model.layout import DELIVER, DELIVER_TEMPLATE, IMAGES, EnvironmentId
from provision.model.operation import Pack

# zstd level 4 packs TensorFlow 2.15.1 in 5 s to 25 % of its size on two cores; level 15, the default, in 277 s to 22 %.
# Blocks of 128 KiB are read twice as fast as those of 1 MiB, for 2 % more size (open-runtimes issue 529).
# Equal files give equal bytes, packed before the seal or after it.
OPTIONS = (
    *("-comp", "zstd", "-Xcompression-level", "4", "-b", "128K", "-no-xattrs"),
    *("-mkfs-time", "0", "-action", "chmod(a-w)@true", "-noappend", "-no-progress", "-quiet"),
)
WITHOUT_RECORDS = ("-wildcards", "-e", ".provision/*")


def pack(
    store: Store,
    env: EnvironmentId,
    operation: Pack,
    environ: Mapping[str, str],
    log: Path,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Make the images of an environment, beside those of an earlier run, which they then replace; returns what describes them.

    Jobs that begin meanwhile find the old ones or the new ones; between the two, `provision-deliver` reads the plain files. If
    the files are only in the image, it stays, and only the program is written again.

    Raises:
        CommandError: there is no `mksquashfs`, or it fails; the earlier images stay.
        StoreError: a file or folder cannot be written.
    """
    prefix, folder = Path(store.layout.prefix(env)), Path(store.layout.images(env))
    only = is_image_only(prefix)
    if not only and shutil.which("mksquashfs", path=environ.get("PATH")) is None:
        raise CommandError("there is no `mksquashfs` on this node", hint="install the package `squashfs-tools`")
    store.shared.make(folder, below=folder.parent)
    os.utime(folder.parent, (0, 0))  # the one time in the image that changes when nothing else does
    if only:
        images = described_images(store, env)["images"]
    else:
        images = [_image(prefix, folder / "environment.squashfs", environ, log, say)]
        base = shared_python(prefix)
        if base:
            images.append(_image(base, folder / "python.squashfs", environ, log, say))
    command = [
        word.replace("{image}", image["file"]).replace("{folder}", image["folder"])
        for word in operation.mount_with
        for image in (images if "{image}" in word else images[:1])
    ]
    text = render(
        DELIVER_TEMPLATE,
        environment=str(env),
        fingerprint=f"{env.fingerprint}-{images[0]['sha256'][:8]}",
        images=images,
        command=command,
        program=str(folder / DELIVER),
        only=operation.only,
    )
    write(folder / DELIVER, text, executable=True)
    program = {"sha256": hashlib.sha256(text.encode()).hexdigest(), "template": template_sha256(DELIVER_TEMPLATE)}
    write_json(folder / IMAGES, {"environment": str(env), "images": images, "only": operation.only, "program": program})
    for path in set(folder.iterdir()) - {folder / DELIVER, folder / IMAGES, *(Path(image["file"]) for image in images)}:
        path.unlink()  # of an earlier run that was killed, or of a Python that is not shared any more
    return {"images": images}


def _image(
    source: Path, file: Path, environ: Mapping[str, str], log: Path, say: Callable[[str], None]
) -> dict[str, Any]:
    """Make one image, and describe it: its file, the folder that it replaces, its hash and its bytes."""
    part = file.with_name(f"{file.name}.part")
    part.unlink(missing_ok=True)  # of a run that was killed
    result = stream(("mksquashfs", str(source), str(part), *OPTIONS, *WITHOUT_RECORDS), environ=environ, log=log)
    if result.code:
        raise failed_program(
            f"the image of `{source}` was not made: `mksquashfs` ended with code {result.code}",
            result.tail,
            hint=f"read `{log}`, fix the cause, then run the same command again",
            log=str(log),
        )
    part.chmod(0o444)
    size, sha256 = part.stat().st_size, sha256_of(part)
    part.replace(file)
    say(f"{file.name}: {size / 1e6:.0f} MB")
    return {"file": str(file), "folder": str(source), "sha256": sha256, "size": size}


def shared_python(prefix: Path) -> Path | None:
    """The folder of the base Python of an environment, if it is on another file system than `/`."""
    base = Path(os.path.realpath(prefix / "bin" / "python")).parent.parent
    inside = base == prefix or base in (Path("/"), Path("/usr"))
    return None if inside or base.stat().st_dev == Path("/").stat().st_dev else base
