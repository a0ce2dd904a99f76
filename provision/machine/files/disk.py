"""Read files, and write them completely or not at all; errors of the file system become errors with a hint.

A file that is there after a crash or a power cut must not be empty. A receipt, a record or a pointer speaks for files that others
wrote: an installer, a compiler. Those are in the memory of the kernel for up to half a minute. `sync_file_system` waits until
they are on the disk, so a receipt that is written afterwards cannot be there without them. `write` itself waits for the content
of its file, but not for the name: if the name is lost, the step runs again.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import shlex
import shutil
import stat
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from provision.errors import ConfigError, NewerError, StoreError
from provision.machine.files.trusted_files import MIB, open_regular, read_regular

JSON = dict[str, Any]
# Records and reports have some kilobytes.
MOST_JSON = 16 * MIB
# A wheel of TensorFlow for GPUs has 0.6 GB.
MOST_PACKAGE = 4096 * MIB


def disk_error(error: OSError, path: object) -> StoreError:
    """The `StoreError` for an error of the file system, with a hint."""
    where = str(getattr(error, "filename", None) or path)
    if isinstance(error, shutil.Error):  # a list of failed copies, each with its reason as text
        found = re.search(r"\[Errno (\d+)\]", str(error))
        number = int(found[1]) if found else errno.EIO
        error = OSError(number, os.strerror(number), *error.args)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        word = "disk is full" if error.errno == errno.ENOSPC else "quota is used up"
        return StoreError(
            f"the {word}: `{where}` could not be written",
            hint=f"`df -h {shlex.quote(str(path))}`; free some space, then run the same command again; it continues where it "
            "stopped",
            kind="no-space",
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return StoreError(
            f"`{where}` cannot be written: {error.strerror}",
            hint="`export PROVISION_ROOT=…` to a folder that you can write, or set `root` in the site profile",
        )
    hint = f"`ls -ld {shlex.quote(where)}`, then correct the path or the file"
    return StoreError(f"`{where}`: {error.strerror}", evidence=[repr(error)], hint=hint)


@contextlib.contextmanager
def disk_errors(path: object) -> Iterator[None]:
    """An error of the file system in this context becomes a `StoreError`; `path` is for one that names no file."""
    try:
        yield
    except OSError as error:
        raise disk_error(error, path) from error


def record_error(error: Exception, path: str | Path, hint: str) -> StoreError:
    """The `StoreError` for a record below the root that cannot be read. `hint` is for one that is damaged."""
    if isinstance(error, NewerError):
        return StoreError(
            f"`{path}` can only be read by a newer version of provision",
            evidence=[str(error)],
            hint="update this installation; until then it changes nothing that a newer version wrote",
            kind="newer",
        )
    reason = getattr(error, "strerror", None) or str(error)
    return StoreError(f"`{path}` is damaged", evidence=[reason], hint=hint, kind="damaged-record")


def sha256_of(path: Path, *, limit: int = MOST_PACKAGE) -> str:
    """The sha256 of a regular file of at most `limit` bytes, in hexadecimal.

    Raises:
        OSError: it is not a regular file, is too large, or cannot be read.
    """
    descriptor, status = open_regular(path)
    with os.fdopen(descriptor, "rb") as file:
        if status.st_size > limit:
            raise OSError(errno.EFBIG, f"is larger than {limit} bytes", str(path))
        digest = hashlib.sha256()
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def differing(folder: Path, hashes: Mapping[str, str], changed: str) -> Iterator[tuple[str, str]]:
    """The files in a folder that differ from their hashes, with the reason: `changed`, or that it is empty or missing."""
    for name, expected in hashes.items():
        try:
            if sha256_of(folder / name) != expected:
                yield name, changed if (folder / name).stat().st_size else "it is empty"
        except OSError as error:
            yield name, "it is missing" if isinstance(error, FileNotFoundError) else str(error.strerror)


def has_sha256(path: Path, *hashes: str, limit: int = MOST_PACKAGE) -> bool:
    """Whether there is a regular file of at most `limit` bytes at this path with one of these hashes."""
    try:
        return sha256_of(path, limit=limit) in hashes
    except OSError:
        return False


def write(path: Path, text: str, *, executable: bool = False, private: bool = False) -> None:
    """Write a file so that readers see either the old or the complete new one; only the owner can read a `private` file.

    Raises:
        StoreError: the disk is full, or the folder is not writable; no partial file is left behind.
    """
    _write(path, text, (0o755 if executable else 0o644) & (0o700 if private else 0o777))


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON object as `write` does, in the form of all records."""
    write(path, json.dumps(value, indent=1) + "\n")


def rewrite(path: Path, text: str) -> None:
    """Write other text to a file that exists, as `write` does: its mode stays, and so does a symbolic link to it.

    Raises:
        StoreError: the file does not exist, the disk is full, or the folder is not writable.
    """
    with disk_errors(path):
        real = path.resolve(strict=True)
        mode = stat.S_IMODE(real.stat().st_mode)
    _write(real, text, mode)


def _write(path: Path, text: str, mode: int) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(3).hex()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Nobody else reads a private file, not even before its mode is set.
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise disk_error(error, path.parent) from error


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


def remove(path: Path) -> None:
    """Remove a file, if it exists.

    Raises:
        StoreError: the folder is not writable.
    """
    with disk_errors(path):
        path.unlink(missing_ok=True)


def size_of(path: Path) -> int | None:
    """The size of a regular file in bytes; None if there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def json_object(content: bytes) -> JSON:
    """The JSON object in the content of a file. Raises `ValueError` for anything else."""
    try:
        value = json.loads(content)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("it is not a JSON object")
    return value


def toml_table(text: str) -> Mapping[str, Any]:
    """The table in a text of TOML. Raises `ValueError` for anything else."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        table: Mapping[str, Any] = tomllib.loads(text)  # a number of more than 4300 digits is a ValueError too
        return table
    except RecursionError:  # a thousand brackets
        raise ValueError("it is nested too deeply") from None


def read_json(path: Path) -> JSON | None:
    """The JSON object in a file; None if the file does not exist, is not a regular file, is too large or is damaged."""
    try:
        return json_object(read_regular(path, limit=MOST_JSON)[0])
    except (OSError, ValueError):
        return None


def read_given(name: str, what: str, *, stdin: bool = False, errors: str = "strict", exact: bool = False) -> str:
    """The text of a file that the user named; `-` is stdin if `stdin` is set. `errors` is as for `bytes.decode`.

    Its lines end in a line feed, unless it is to be `exact`.

    Raises:
        ConfigError: the file does not exist, cannot be read, is a folder, or is not UTF-8.
    """
    try:
        data = sys.stdin.buffer.read() if stdin and name == "-" else Path(name).read_bytes()
        text = data.decode("utf-8", errors)
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable(name, what, error, stdin=stdin and name == "-") from error
    return text if exact else text.replace("\r\n", "\n").replace("\r", "\n")


def unreadable(name: str, what: str, error: Exception, *, stdin: bool) -> ConfigError:
    """The error for a file that the user named and that cannot be read."""
    hint = None if stdin else f"`ls -l {shlex.quote(name)}`"
    return ConfigError(f"the {what} `{name}` cannot be read", evidence=[str(error)], hint=hint)


def is_file(path: str) -> bool:
    """Whether there is a file, or a link to one, at this path."""
    return os.path.isfile(path)  # noqa: PTH113


def is_folder(path: str) -> bool:
    """Whether there is a folder at this path."""
    return Path(path).is_dir()


def folders_named(folder: str, name: str) -> list[str]:
    """The folders below a folder with this name, then those whose name continues after a point."""
    below = Path(folder)
    return [str(path) for path in (below / name, *sorted(below.glob(f"{name}.*"))) if path.is_dir()]


def names_in(folder: str) -> list[str]:
    """The names in a folder, sorted, without those that begin with a point; none if it cannot be read."""
    try:
        return sorted(name for name in os.listdir(folder) if not name.startswith("."))  # noqa: PTH208
    except OSError:
        return []


def exists(path: str) -> bool:
    """Whether there is a file or folder at this path."""
    return os.path.exists(path)  # noqa: PTH110


def write_temporary(prefix: str, text: str) -> str:
    """Write a text to a new file in the folder for temporary files, which stays; returns its path."""
    import tempfile

    with tempfile.NamedTemporaryFile("w", prefix=prefix, suffix=".txt", delete=False) as file:
        file.write(text)
    return file.name
