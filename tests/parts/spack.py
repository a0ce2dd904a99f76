"""A real Spack for the tests: an archive in `PROVISION_TEST_SPACK`, or the checkout in `SPACK_ROOT`.

An archive is unpacked once, into the user's cache; its commit is the end of its name: `spack-1.2.0.dev0-9cf6633.tar.xz`.
"""

from __future__ import annotations

import os
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

# Of the environment, before `conftest.py` takes all settings of ours out of it.
ARCHIVES, ROOT = os.environ.get("PROVISION_TEST_SPACK"), os.environ.get("SPACK_ROOT")
MISSING = "there is no Spack: PROVISION_TEST_SPACK names no folder with `spack-*.tar.xz`, and SPACK_ROOT no checkout"


@dataclass(frozen=True)
class RealSpack:
    """A checkout of Spack, and the words that say its commit to `provision spack setup`."""

    checkout: Path
    words: tuple[str, ...]


def find_spack() -> RealSpack | None:
    """The Spack of this machine; None if it has none."""
    archives = sorted(Path(ARCHIVES).glob("spack-[0-9]*.tar.xz")) if ARCHIVES else []
    if archives:
        commit = archives[-1].name.removesuffix(".tar.xz").rpartition("-")[2]
        return RealSpack(unpacked(archives[-1], commit), ("--commit", commit))
    if ROOT and (Path(ROOT) / "bin" / "spack").is_file():
        return RealSpack(Path(ROOT), ())
    return None


def unpacked(archive: Path, commit: str) -> Path:
    """The checkout in an archive, unpacked once."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "provision-tests"
    folder = cache / f"spack-{commit}"
    if not (folder / "spack" / "bin" / "spack").is_file():
        new = cache / f".spack-{commit}.{os.getpid()}"
        with tarfile.open(archive) as file:
            file.extractall(new, filter="data")
        if not folder.exists():
            new.rename(folder)
    return folder / "spack"


def plain_spack(
    spack: Path, python: Path, home: Path, environment: Path, *words: str, **more: str
) -> subprocess.CompletedProcess[str]:
    """Spack as a person runs it, without this tool; nothing of the user's configuration decides."""
    home.mkdir(parents=True, exist_ok=True)
    environ = {
        "HOME": str(home),
        "PATH": "/usr/bin:/bin",
        "LC_ALL": "C.UTF-8",
        "SPACK_DISABLE_LOCAL_CONFIG": "1",
        "SPACK_USER_CACHE_PATH": str(home / "cache"),
        "SPACK_PYTHON": str(python),
        **more,
    }
    return subprocess.run(
        [str(spack / "bin" / "spack"), "-e", str(environment), *words],
        env=environ,
        stdin=subprocess.PIPE,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
