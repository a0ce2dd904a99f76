"""Environments that are kept as their image only: one file in place of 23,000, for roots with few inodes.

The files are there until the environment has its record, and go when it is published: nobody can have loaded them before. In
place of each program a link leads to `provision-deliver`, which starts the program of the same path in the image.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

from provision.errors import StoreError
from provision.machine.files.disk import disk_errors, sha256_of
from provision.machine.root.store import Store
from provision.model.layout import DELIVER, IMAGES, EnvironmentId

LINK = f"../.provision/images/{DELIVER}"


def is_link(program: Path) -> bool:
    """Whether a program is a link to the one that starts it in the image."""
    with contextlib.suppress(OSError):
        return str(program.readlink()) == LINK
    return False


def is_image_only(prefix: Path) -> bool:
    """Whether the files of an environment are only in its image."""
    return is_link(prefix / "bin" / "python")


def described_images(store: Store, env: EnvironmentId) -> dict[str, Any]:
    """What describes the images of an environment; empty if it has none, or the description is damaged."""
    return store.shared.read_json(Path(store.layout.images(env)) / IMAGES) or {}


def start_in_image(venv: Path, prefix: Path) -> None:
    """Let the programs of a virtual environment start in the image that it is on: its Python is the environment's, not the base.

    Raises:
        StoreError: a link cannot be made.
    """
    with disk_errors(venv):
        for path in (venv / "bin").glob("python*"):
            if path.readlink().is_absolute():
                path.unlink()
                path.symlink_to(prefix / "bin" / "python")


def drop_files(store: Store, env: EnvironmentId) -> None:
    """Remove the files of an environment that is to be kept as its image only; nothing of any other. It can be repeated.

    Raises:
        StoreError: the image is not the one that was packed, or something cannot be removed.
    """
    prefix, described = Path(store.layout.prefix(env)), described_images(store, env)
    if not described.get("only"):
        return
    with disk_errors(prefix):
        if not is_image_only(prefix):
            for image in described["images"]:
                if sha256_of(Path(image["file"])) != image["sha256"]:
                    raise StoreError(
                        f"`{image['file']}` is damaged, so the files of `{env}` stay, and it is not published",
                        hint="`provision build --rebuild` builds it again, beside this one",
                    )
        # A kill between two of these renames breaks nothing: from the first one, `python`, the environment is its image.
        programs = [path for path in (prefix / "bin").iterdir() if os.access(path, os.X_OK) and not is_link(path)]
        for program in sorted(programs, key=lambda path: path.name != "python"):
            link = prefix / ".provision" / f".{DELIVER}.link"
            link.unlink(missing_ok=True)
            link.symlink_to(LINK)
            link.replace(program)
        for path in (prefix / "bin").iterdir():
            if not is_link(path):
                store.remove(str(path))
        for path in prefix.iterdir():
            if path.name not in ("bin", ".provision"):
                store.remove(str(path))
