"""Open and read a file that another user may have put there: a FIFO does not hang, and a large file is refused.

What is read and what is judged are the same file: the status is that of the open descriptor, so replacing the path between
a check and the reading changes nothing. It imports only `os`, `errno` and `stat`, because completion uses it at each
press of Tab. All refusals are `OSError`s, like those of the system.
"""

from __future__ import annotations

import errno
import os
import stat

MIB = 1 << 20
KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFDIR: "a folder",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFLNK: "a symbolic link",
}


def open_regular(path: str | os.PathLike[str], *, follow: bool = True) -> tuple[int, os.stat_result]:
    """Open a regular file for reading: its descriptor, which the caller closes, and the descriptor's status.

    With `follow=False` the last part of the path must not be a symbolic link.

    Raises:
        OSError: there is no such file, it cannot be opened, or it is not a regular file.
    """
    name = os.fspath(path)
    try:
        # Without O_NONBLOCK, opening a FIFO waits for a writer; a terminal must not become ours.
        descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | (0 if follow else os.O_NOFOLLOW))
    except ValueError as error:  # a null character, or a surrogate that the file system cannot encode
        raise OSError(errno.EINVAL, f"is not a valid path: {error}", ascii(name)) from None
    except OSError as error:
        if error.errno == errno.ELOOP and not follow and os.path.islink(name):
            raise OSError(errno.ELOOP, "is a symbolic link, not a regular file", name) from None
        if error.errno == errno.ENXIO:
            raise OSError(errno.EINVAL, "is a socket, not a regular file", name) from None
        raise
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            kind = KINDS.get(stat.S_IFMT(status.st_mode), "something else")
            raise OSError(errno.EINVAL, f"is {kind}, not a regular file", name)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, status


def read_regular(
    path: str | os.PathLike[str], *, limit: int = MIB, follow: bool = True
) -> tuple[bytes, os.stat_result]:
    """The content of a regular file of at most `limit` bytes, and the status of the file that was read.

    Raises:
        OSError: as of `open_regular`, or the file is larger than `limit`.
    """
    descriptor, status = open_regular(path, follow=follow)
    with open(descriptor, "rb", buffering=0) as file:
        content = b""
        # A file that grows while it is read ends at the limit too.
        while len(content) <= limit and (block := file.read(limit + 1 - len(content))):
            content += block
    if len(content) > limit:
        raise OSError(errno.EFBIG, f"is larger than {limit} bytes", os.fspath(path))
    return content, status
