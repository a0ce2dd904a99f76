"""The tool of an older version, from the history of this repository."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from parts.paths import REPOSITORY

COMMIT = "8341fc1"


def older_tool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A checkout of it, which the Python of the tests can run; a fixture."""
    folder = tmp_path_factory.mktemp("older")
    done = subprocess.run(["git", "-C", str(REPOSITORY), "archive", COMMIT], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("the history of the repository is not here")
    subprocess.run(["tar", "-x", "-C", str(folder)], input=done.stdout, check=True)
    yield folder
