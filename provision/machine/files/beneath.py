"""Write, change modes, and remove, below folders in which other users can write too.

Between a look at a name and a change by that name, another user can exchange what is there. A descriptor stays with the file
that was opened. So a name is opened first, never through a link, and what was opened is judged and changed. A symbolic link, or
a second name of a file (a hard link), at the path of a lock or a log would let another user choose which file of ours is
overwritten.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import tempfile
from collections.abc import Callable, Container
from pathlib import Path
from typing import TextIO

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NONBLOCK | os.O_CLOEXEC
# Needs no right to read, and opens no FIFO and no device.
PLACE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
OWN = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
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


def open_own(path: Path, *, append: bool = False) -> TextIO:
    """A text file of ours, which has no other name, empty unless `append` is set; its lines are written at once.

    Raises:
        OSError: it belongs to another user, there is something else at this path, or it cannot be opened.
    """
    flags = OWN | os.O_WRONLY | (os.O_APPEND if append else 0)
    while True:
        try:
            # Not O_CREAT alone: with the sysctl fs.protected_regular the kernel then refuses another user's lock in a
            # sticky folder, although it may be written.
            descriptor = os.open(path, flags)
            break
        except FileNotFoundError:
            try:
                descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o644)
                break
            except FileExistsError:
                continue  # another process made it
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise OSError(errno.ELOOP, "is a symbolic link", str(path)) from None
            if error.errno == errno.ENXIO:
                raise OSError(errno.ENXIO, "is a FIFO or a socket", str(path)) from None
            raise
    status = os.fstat(descriptor)
    wrong: tuple[int, str] | None = None
    if not stat.S_ISREG(status.st_mode):
        wrong = errno.EINVAL, "is not a regular file"
    elif status.st_nlink != 1:
        wrong = errno.EINVAL, "has a second name (a hard link)"
    elif status.st_uid != os.geteuid():
        wrong = errno.EPERM, "belongs to another user"
    if wrong:
        os.close(descriptor)
        raise OSError(*wrong, str(path))
    if not append:
        os.ftruncate(descriptor, 0)
    return os.fdopen(descriptor, "w", encoding="utf-8", errors="replace", buffering=1)


def new_folder(parent: Path, prefix: str) -> Path:
    """A folder of ours with a name that nobody can know before; all users can read it, like its neighbours."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    change_mode(folder, lambda mode: mode | 0o055)
    return folder


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
