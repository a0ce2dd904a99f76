"""What is known of Miniforge: its releases, the Python that each brings, and the checksums of the installers.

Sources: github.com/conda-forge/miniforge/releases; the checksums as Spack's package `miniforge3` holds them, those of
25.3.0-3 also as Arch Linux's package does. A release is chosen by its Python: a lock is for one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

URL = "https://github.com/conda-forge/miniforge/releases/download/{version}/Miniforge3-{version}-Linux-{machine}.sh"


@dataclass(frozen=True, slots=True, kw_only=True)
class Miniforge:
    """A release; `sha256` is of its installer for each machine (as `uname -m` says it)."""

    version: str
    python: str
    sha256: Mapping[str, str]

    def url(self, machine: str) -> str:
        """Where the installer for this machine is."""
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
    """The newest release whose Python is one of these."""
    return next((one for one in RELEASES if one.python in pythons), None)
