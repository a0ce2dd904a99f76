"""Miniforge: its releases, the Python version of each, and the checksums of the installers.

Sources: github.com/conda-forge/miniforge/releases. The checksums are those of Spack's package `miniforge3`; the ones of
25.3.0-3 are also in Arch Linux's package. A release is chosen by its Python, because a lock is for one Python.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

URL = "https://github.com/conda-forge/miniforge/releases/download/{version}/Miniforge3-{version}-Linux-{machine}.sh"


@dataclass(frozen=True, slots=True, kw_only=True)
class Miniforge:
    """A release; `sha256` holds the checksum of the installer for each machine (a name that `uname -m` prints)."""

    version: str
    python: str
    sha256: Mapping[str, str]

    def url(self, machine: str) -> str:
        """The URL of the installer for this machine."""
        return URL.format(version=self.version, machine=machine)


RELEASES = (
    Miniforge(
        version="25.3.0-3",
        python="3.12",
        sha256={
            "x86_64": "1b57f8cb991982063f79b56176881093abb1dc76d73fda32102afde60585b5a1",
            "aarch64": "ac89f17b0eec4e98d38a53d1ae688e0f22c77d8ea5b5f008c2455e90ef095339",
        },
    ),
    Miniforge(
        version="24.3.0-0",
        python="3.10",
        sha256={"x86_64": "23367676b610de826f50f7ddc91139a816d4b59bd4c69cc9b6082d9b2e7fe8a3"},
    ),
)


def release_for(pythons: Sequence[str]) -> Miniforge | None:
    """The newest release whose Python is one of `pythons`; None if there is none."""
    return next((miniforge for miniforge in RELEASES if miniforge.python in pythons), None)
