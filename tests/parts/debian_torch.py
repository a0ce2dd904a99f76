"""Debian's PyTorch for CPUs, as a site's own module would give it: real, with gloo, and in a folder of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from parts.modules import CACHE

PYTHON = "/usr/bin/python3"
"""Debian's Python, for which it is built."""
FOLDER = CACHE / "python3-torch" / "usr"


def torch_environ() -> dict[str, str]:
    """The variables with which `PYTHON` imports torch; the test is skipped where this machine lacks it."""
    libraries = next(FOLDER.glob("lib/*/libtorch_cpu.so*"), None)
    if libraries is None:
        pytest.skip("there is no PyTorch here (`.ci/install` brings it)")
    folder: Path = libraries.parent
    return {
        "PYTHONPATH": str(FOLDER / "lib/python3/dist-packages"),
        "LD_LIBRARY_PATH": ":".join(map(str, (folder, folder.parent, folder / "blas", folder / "lapack"))),
    }
