"""What was written reaches the disk: a file that is there after a crash or a power cut must not be empty.

A receipt, a record or a pointer speaks for files that others wrote: an installer, a compiler. Those are in the memory of the
kernel for up to half a minute. `sync_file_system` waits until they are on the disk, so a receipt that is written afterwards
cannot be there without them. `disk.write` itself waits for the content of its file, but not for the name: if the name is
lost, the step runs again.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path


def sync_file_system(path: Path) -> None:
    """Wait until everything that was written to the file system of this folder is on its disk.

    `syncfs` waits for one file system, and on a parallel one for what this node wrote; `sync` would wait for all file systems.

    Raises:
        OSError: something could not be written: an error of the disk, or no space after all.
    """
    import ctypes

    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(descriptor) != 0:
            number = ctypes.get_errno()
            if number != errno.ENOSYS:
                raise OSError(number, os.strerror(number), str(path))
            os.sync()  # a kernel without syncfs
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Wait until everything below a small folder is on the disk: the files, and the names in all folders.

    Raises:
        OSError: something could not be written.
    """
    for place, _, names in os.walk(folder):
        for name in names:
            file = Path(place) / name
            if not file.is_symlink():
                _sync(file, os.O_RDONLY)
        sync_folder(Path(place))


def sync_folder(path: Path) -> None:
    """Wait until the names in this folder, for example one that was just replaced, are on the disk."""
    _sync(path, os.O_RDONLY | os.O_DIRECTORY)


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
