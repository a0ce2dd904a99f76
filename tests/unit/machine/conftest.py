"""A root for the tests of what is on disk."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

from provision.machine.root.store import Store
from provision.model.layout import Layout


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """The store below a root that does not exist yet."""
    return Store(Layout(PurePosixPath(tmp_path / "root")))
