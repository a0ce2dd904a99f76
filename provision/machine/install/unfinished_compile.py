"""The folder of a compilation that was killed: its objects are used again if they are of the same wheel and on the disk.

A stamp names the wheel and the machine. After a crash of a machine, files that it wrote may be empty although the build tool
counts them as made, so objects are only believed on the machine that made them, since its start, or after a sync.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

from provision.machine.files.disk import read_json, write
from provision.machine.files.durable import sync_file_system
from provision.machine.programs.process_tree import boot_id
from provision.machine.root.store import Store

STAMP = "compile.json"


def resume(store: Store, folder: Path, key: str) -> bool:
    """Make the folder ready for a compilation of the wheel with this key; whether it has objects of an earlier one.

    Raises:
        StoreError: it cannot be removed or made.
    """
    known = _stamp(folder)
    kept = known is not None and known.get("key") == key and known.get("objects on disk") in (True, boot_id())
    if not kept:
        store.remove(str(folder))
    write(folder / STAMP, json.dumps({"key": key, "objects on disk": boot_id()}) + "\n")
    return kept


def settle(folder: Path) -> None:
    """Wait until what an interrupted compilation made is on the disk, so that every machine can use it.

    Raises:
        OSError: something could not be written.
    """
    known = _stamp(folder)
    if known is not None:
        sync_file_system(folder)
        write(folder / STAMP, json.dumps({**known, "objects on disk": True}) + "\n")


def _stamp(folder: Path) -> dict[str, object] | None:
    """The stamp of the folder; None if it has none, or another user could have written in it."""
    try:
        status = folder.lstat()
    except OSError:
        return None
    ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022
    return read_json(folder / STAMP) if ours else None
