"""Open files for writing in folders that others can write too: never through a link, and only a regular file.

A symbolic link, or a second name of a file (a hard link), at the path of a lock or a log would let another user choose which
file of ours is overwritten.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from pathlib import Path
from typing import TextIO

from provision.machine.files.beneath import change_mode

FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def open_own(path: Path, *, append: bool = False) -> TextIO:
    """A text file of ours, which has no other name, empty unless `append` is set; its lines are written at once.

    Raises:
        OSError: it belongs to another user, there is something else at this path, or it cannot be opened.
    """
    flags = FLAGS | os.O_WRONLY | (os.O_APPEND if append else 0)
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
