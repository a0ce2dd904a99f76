"""Change modes, and remove, below folders in which other users can write too.

Between a look at a name and a change by that name, another user can exchange what is there. A descriptor stays with the file
that was opened. So a name is opened first, never through a link, and what was opened is judged and changed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Callable, Container
from pathlib import Path

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NONBLOCK | os.O_CLOEXEC
# Needs no right to read, and opens no FIFO and no device.
PLACE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
DEEPEST = 200
"""How many folders in each other are removed: each needs a descriptor."""


def change_mode(name: str | Path, wanted: Callable[[int], int], folder: int | None = None) -> os.stat_result:
    """Change the mode of a file or folder, but not of what a link leads to; returns its status before.

    `wanted` gets the whole `st_mode`; `folder` is the descriptor of the folder that contains it.

    Raises:
        OSError: it does not exist, or the mode cannot be changed.
    """
    place = os.open(name, PLACE, dir_fd=folder)
    try:
        status = os.fstat(place)
        mode = stat.S_IMODE(wanted(status.st_mode))
        if not stat.S_ISLNK(status.st_mode) and mode != stat.S_IMODE(status.st_mode):
            os.chmod(_of(place), mode)  # noqa: PTH101
    finally:
        os.close(place)
    return status


def change_modes(top: Path, wanted: Callable[[int], int], leave: Container[str] = ()) -> int:
    """Change the modes of everything below a folder, but not its own; returns the size of all files in bytes.

    `leave` names what stays as it is directly in `top`.

    Raises:
        OSError: a folder cannot be read, or a mode cannot be changed.
    """

    def fail(error: OSError) -> None:
        raise error

    size, descriptor = 0, os.open(top, FOLDER)  # a FIFO would be waited for
    try:
        for place, folders, files, folder in os.fwalk(".", onerror=fail, dir_fd=descriptor):
            if place == ".":
                folders[:] = [name for name in folders if name not in leave]
            for name in (*folders, *files):
                if place != "." or name not in leave:
                    size += change_mode(name, wanted, folder).st_size
    finally:
        os.close(descriptor)
    return size


def remove(path: Path, folder: int) -> None:
    """Remove a file, a link, or a folder with everything in it; not what is on another mount, nor what a link leads to.

    `folder` is the descriptor of the folder that contains it; `path` is for errors.

    Raises:
        OSError: why something stays. Everything else below it is gone.
    """
    errors: list[OSError] = []
    _remove(path, folder, errors, 0)
    if errors:
        raise errors[0]


def _remove(path: Path, folder: int, errors: list[OSError], depth: int) -> None:
    try:
        # Most are files. A link is removed itself, and a folder is refused: no look is needed before.
        with contextlib.suppress(IsADirectoryError):
            os.unlink(path.name, dir_fd=folder)
            return
        place = os.open(path.name, PLACE, dir_fd=folder)
        try:
            mode = os.fstat(place).st_mode
            if _mount_of(place) != _mount_of(folder):
                raise OSError(errno.EXDEV, "another file system is mounted there")
            if depth > DEEPEST:
                raise OSError(errno.ELOOP, "too many folders in each other")
            if not os.access(_of(place), os.R_OK | os.W_OK | os.X_OK):
                with contextlib.suppress(PermissionError):  # it belongs to another user
                    os.chmod(_of(place), stat.S_IMODE(mode) | 0o700)  # noqa: PTH101
            inside = os.open(".", FOLDER, dir_fd=place)
        finally:
            os.close(place)
        try:
            for name in os.listdir(inside):  # noqa: PTH208
                _remove(path / name, inside, errors, depth + 1)
        finally:
            os.close(inside)
        os.rmdir(path.name, dir_fd=folder)
    except FileNotFoundError:
        return  # another run removed it
    except OSError as error:
        error.filename = str(path)
        errors.append(error)


def _of(descriptor: int) -> str:
    """The path of what this descriptor has open, whatever has its name now."""
    return f"/proc/self/fd/{descriptor}"


def _mount_of(descriptor: int) -> tuple[int, str]:
    """What is mounted where this descriptor is: a folder that is mounted a second time has the same device."""
    about = Path(f"/proc/self/fdinfo/{descriptor}").read_text(encoding="ascii")
    mount = re.search(r"^mnt_id:\s*(\d+)", about, re.MULTILINE)
    return os.fstat(descriptor).st_dev, mount[1] if mount else ""
