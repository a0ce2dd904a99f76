"""Folders in memory, for tests that write and remove many small files and are not about the disk."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

MEMORY, MEMORY_PREFIX = Path("/dev/shm"), "provision-test-"


def folder_in_memory() -> Iterator[Path]:
    """A new folder in memory if possible, and below the usual temporary folder otherwise; it is removed at the end."""
    folder = Path(tempfile.mkdtemp(dir=MEMORY if os.access(MEMORY, os.W_OK) else None, prefix=MEMORY_PREFIX))
    yield folder
    shutil.rmtree(folder)
