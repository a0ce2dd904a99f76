"""A real file system of a chosen size, for disks that are full."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


def mounted(folder: Path, options: str) -> Iterator[Path]:
    """A file system in memory, where this machine lets us."""
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("mounting a tmpfs needs root")
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"mode=755,{options}", "tmpfs", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"cannot mount a tmpfs: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def loop_disk(image: Path, folder: Path, size: str = "16M") -> Iterator[Path]:
    """An ext4 file system in the file `image`, mounted on `folder`, where this machine lets us.

    The file has what a disk would have: what was written but not synced is not in it.
    """
    if not image.exists():
        run_or_skip("truncate", "-s", size, str(image))
        run_or_skip("mkfs.ext4", "-q", str(image))
    folder.mkdir()
    run_or_skip("mount", "-o", "loop", str(image), str(folder))
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def run_or_skip(*argv: str) -> None:
    """Run a program of the system; skip the test if that is not possible here."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.skip(str(error))
    if done.returncode:
        pytest.skip(f"{argv[0]}: {done.stderr.strip()}")


def fill(disk: Path) -> None:
    """Leave no block free."""
    with (disk / "filler").open("wb", buffering=0) as file:
        for size in (65536, 4096, 1):
            while True:
                try:
                    if file.write(b"x" * size) < size:
                        break
                except OSError:
                    break


def files_below(folder: Path) -> list[str]:
    """Every file below a folder, hidden ones too."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())
