"""Give an environment the files that another one of the same root has too: hard links in place of copies, before it is sealed.

Only files that nobody may write any more are linked, of the same owner, group and mode, and only after both contents were hashed.
The tool never writes, nor changes the mode of, a file of a sealed environment; `beneath.remove` only takes its name away.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from provision.machine.files.file_tree import digests, status_of_files
from provision.machine.root.store import Store
from provision.model.layout import EnvironmentId
from provision.model.manifest import FILES, FileEntry, Files, read_files, source_of

MOST_TEXT = 256 << 20


def link_equal_files(store: Store, env: EnvironmentId) -> tuple[dict[str, str], int]:
    """Replace what sealed environments have too; returns the hash of each file that was read, and the bytes that are linked.

    The copies stay on a file system without such links, and where the folders are read-only already: those of a run that was
    killed after this.

    Raises:
        OSError: a file of the environment cannot be read.
    """
    prefix, part = Path(store.layout.prefix(env)), Path(store.layout.records_folder(env)) / "linked"
    part.unlink(missing_ok=True)  # of a run that was killed
    own = {path: status for path, status in status_of_files(prefix).items() if stat.S_ISREG(status.st_mode)}
    timed = {source_of(path) for path in own if path.endswith(".pyc") and _compares_times(prefix / path)}
    hashes: dict[str, str] = {}
    linked = 0
    for other in _sealed(store):
        sibling = Path(store.layout.prefix(other))
        there = _manifest(store, sibling)
        alike = [path for path in own if path in there and _is_alike(own[path], there[path], path in timed)]
        for path, digest in digests(prefix, [path for path in alike if path not in hashes]):
            if isinstance(digest, OSError):
                raise digest
            hashes[path] = digest
        same = [path for path in alike if hashes[path] == there[path].digest]
        equal = [path for path in same if _may_be_linked(sibling / path, own[path])]
        for path, digest in digests(sibling, equal):
            if digest != hashes[path]:
                continue  # it is damaged, or gone
            try:
                os.link(sibling / path, part, follow_symlinks=False)
                part.replace(prefix / path)
            except OSError:
                part.unlink(missing_ok=True)
                return hashes, linked
            linked += own.pop(path).st_size
    return hashes, linked


def _sealed(store: Store) -> list[EnvironmentId]:
    """The environments with a record; the newest first."""
    found = {}
    for env in store.environments():
        with contextlib.suppress(OSError):
            found[env] = Path(store.layout.records_folder(env), "record.json").stat().st_mtime
    return sorted(found, key=lambda env: found[env], reverse=True)


def _manifest(store: Store, prefix: Path) -> Files:
    """The files of a sealed environment; none if its manifest cannot be read."""
    try:
        return read_files((store.shared.read(prefix / ".provision" / FILES, limit=MOST_TEXT) or b"").decode())
    except (OSError, ValueError):
        return {}


def _is_alike(own: os.stat_result, entry: FileEntry, timed: bool) -> bool:
    """Whether a file may have the content of an entry. A source whose time is in its bytecode needs the same time."""
    mode = stat.S_IMODE(own.st_mode) & ~0o222
    same_time = not timed or own.st_mtime_ns == entry.mtime_ns
    return (own.st_size, mode) == (entry.size, entry.mode) and same_time


def _may_be_linked(path: Path, own: os.stat_result) -> bool:
    """Whether a sealed file has the owner, the group and the mode that ours gets; it must not be one with ours already."""
    with contextlib.suppress(OSError):
        status = path.lstat()
        same_owner = (status.st_uid, status.st_gid) == (own.st_uid, own.st_gid)
        return same_owner and status.st_mode == own.st_mode & ~0o222 and not os.path.samestat(status, own)
    return False


def _compares_times(bytecode: Path) -> bool:
    """Whether Python compares the time of the source with that in its bytecode (PEP 552): no flag is set."""
    with bytecode.open("rb") as file:
        return file.read(8)[4:] == bytes(4)
