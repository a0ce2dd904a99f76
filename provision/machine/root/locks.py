"""Locks: `flock` locks of the kernel, which end with the processes that hold them.

A crash leaves none behind. A shared file system must support locks between nodes (Lustre: mounted with `flock`). What a lock
file contains is only for people; who holds the lock is known to the kernel.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import shlex
import socket
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from provision.errors import StoreError
from provision.machine.disk import JSON, disk_error, json_object
from provision.machine.root.own_files import open_without_links
from provision.machine.root.shared_root import SharedRoot, user_name
from provision.machine.trusted_files import read_regular
from provision.schedulers import job_here


def holder(path: Path) -> JSON | None:
    """The holder of the lock at `path`, or None. This only looks: it makes no lock and holds none afterwards."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return read_holder(path)
    except OSError:
        return None  # the file system has no locks; a build reports that
    finally:
        os.close(descriptor)
    return None


def read_holder(path: Path) -> JSON:
    """What the lock file says about its holder; empty if it is damaged."""
    try:
        return json_object(read_regular(path, follow=False)[0])
    except (OSError, ValueError):
        return {}


@contextlib.contextmanager
def held(
    shared: SharedRoot,
    path: Path,
    does: JSON,
    on_wait: Callable[[JSON], None] | None = None,
    *,
    wait: bool = True,
) -> Iterator[int]:
    """Hold the lock at `path`; yields its file descriptor, which child processes can inherit.

    If another process holds the lock, `on_wait` is called once with its holder; if `wait` is false, that is an error.

    Raises:
        StoreError: another process holds the lock, something else is at its path, or the file system has no locks.
    """
    shared.make(path.parent)
    descriptor = open_lock(shared, path)
    try:
        reported = False
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                other = read_holder(path)
                if not wait:
                    raise StoreError(
                        f"this is already being built: {describe_holder(other)}",
                        evidence=[f"lock: {path}"],
                        hint="wait for it (omit `--no-wait`), or end that process",
                        kind="locked",
                    ) from None
                if on_wait and not reported:
                    on_wait(other)
                reported = True
                time.sleep(0.5)
            except OSError as error:
                raise StoreError(
                    f"the file system of `{path}` has no locks: {error.strerror}",
                    hint="mount it with locks between nodes (Lustre: `-o flock`), or move `root` to another file system",
                ) from error
        who = {
            "user": user_name(os.getuid()),
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "job": job_here(os.environ),
            "since": utc_now(),
            **does,
        }
        try:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, json.dumps(who).encode(), 0)
        except OSError as error:
            raise disk_error(error, path.parent) from error
        yield descriptor
    finally:
        os.close(descriptor)


def open_lock(shared: SharedRoot, path: Path) -> int:
    """A descriptor of the lock file, which all admins can write; it is made if it does not exist.

    Raises:
        StoreError: it cannot be opened, or there is something else at its path.
    """
    quoted = shlex.quote(str(path))
    try:
        descriptor = open_without_links(path, os.O_RDWR)
        shared.share_file(descriptor)
    except PermissionError as error:
        status = (path if path.exists() else path.parent).lstat()
        owner, group = user_name(status.st_uid), shared.sharing.group
        raise StoreError(
            f"`{path}` cannot be written: {error.strerror}",
            evidence=[f"owner: {owner}, mode {stat.S_IMODE(status.st_mode):o}"],
            hint=f"as `{owner}` or root: `chgrp {group} {quoted} && chmod g+w {quoted}`"
            if group
            else f"only `{owner}` can build below this root; to share it with a group of admins, set `files.group` in "
            f"`{shared.sharing.origin}`",
        ) from error
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENXIO, errno.EINVAL, errno.EISDIR):
            raise disk_error(error, path.parent) from error
        raise StoreError(
            f"the lock `{path}` {'is a folder' if error.errno == errno.EISDIR else error.strerror}",
            evidence=["a lock is a regular file that `provision` makes; something else was put there"],
            hint=f"`ls -ld {quoted}` shows whose it is; `rm -r {quoted}`, then run the same command again",
            kind="untrusted",
        ) from error
    return descriptor


def utc_now() -> str:
    """The time, ISO 8601 in UTC: `2026-11-22T01:02:03+00:00`."""
    return time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())


def describe_holder(holder: JSON) -> str:
    """The holder of a lock as a phrase: `alice on n1, process 123, job 45, since …`.

    If that process has ended, its child processes hold the lock.
    """
    pid = holder.get("pid")
    if holder.get("host") == socket.gethostname() and pid and not os.path.exists(f"/proc/{pid}"):  # noqa: PTH110
        return f"child processes of the killed process {pid} of {holder.get('user', 'an unknown user')}"
    job = f", job {holder['job']}" if holder.get("job") else ""
    place = f"{holder.get('host', 'an unknown host')}, process {holder.get('pid', '?')}{job}"
    return f"{holder.get('user', 'an unknown user')} on {place}, since {holder.get('since', 'an unknown time')}"
