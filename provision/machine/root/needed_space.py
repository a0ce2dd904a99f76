"""How much space a build needs: from the wheels that were fetched, or from an earlier environment of the same stack."""

from __future__ import annotations

import contextlib
import zipfile
from collections.abc import Sequence
from pathlib import Path

from provision.errors import StoreError
from provision.machine.root.checking import read_head
from provision.machine.root.store import Store
from provision.model.lock import Lock
from provision.model.space import USUAL, Space, space_of_earlier, space_of_wheels
from provision.profile.stack import Stack


def needed_space(store: Store, stack: Stack, locks: Sequence[Lock]) -> Space:
    """The bytes and files that a build of this stack from these locks needs below the root."""
    compiles = stack.horovod is not None
    fetched = [store.downloads.files_of(lock.sha256) for lock in locks]
    if fetched and all(fetched):
        with contextlib.suppress(OSError, zipfile.BadZipFile):
            return _unpacked({path for files in fetched for path in files}, compiles=compiles)
    return _earlier(store, stack, compiles=compiles) or USUAL


def _unpacked(paths: set[Path], *, compiles: bool) -> Space:
    """What these wheels need; 46 wheels of TensorFlow take a tenth of a second.

    Raises:
        OSError: one cannot be read.
        zipfile.BadZipFile: one is not a wheel.
    """
    size = files = modules = modules_size = 0
    for path in paths:
        with zipfile.ZipFile(path) as wheel:
            for file in wheel.infolist():
                size, files = size + file.file_size, files + 1
                if file.filename.endswith(".py"):
                    modules, modules_size = modules + 1, modules_size + file.file_size
    return space_of_wheels(len(paths), size, files, modules, modules_size, compiles=compiles)


def _earlier(store: Store, stack: Stack, *, compiles: bool) -> Space | None:
    """What the newest environment of this stack takes; None if there is none that can be read."""
    found = []
    for env in store.environments(stack.module):
        with contextlib.suppress(StoreError, OSError, ValueError):
            record = store.record(env)
            if record is not None and record.stack == stack.name:
                head = read_head(store, env)
                found.append((record.built, head.size, head.files, str(env)))
    if not found:
        return None
    _, size, files, name = max(found)
    return space_of_earlier(name, size, files, compiles=compiles)
