"""A site whose environments have images, as nodes mount them: other users can read it, and `/dev/fuse` is open."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from parts.tiny import TinySite, make_site

PROGRAMS = ("mksquashfs", "squashfuse_ll", "unshare", "nsenter")


@contextlib.contextmanager
def site_with_image(deliver: str) -> Iterator[TinySite]:
    """The site, with one environment of small packages that is delivered so."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing or not Path("/dev/fuse").exists() or os.geteuid() != 0:
        pytest.skip(f"needs root, /dev/fuse and {' '.join(missing or PROGRAMS)}")
    folder = Path(subprocess.run(["mktemp", "-d"], capture_output=True, text=True, check=True).stdout.strip())
    folder.chmod(0o755)
    # The device is one for all workers: a file of tests that ends must not close it for another.
    with Path(tempfile.gettempdir(), "provision-tests-fuse").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        mode = Path("/dev/fuse").stat().st_mode
        Path("/dev/fuse").chmod(0o666)
        try:
            site = make_site(folder / "site")
            site.write_profile("one", site.root, f'deliver = "{deliver}"\n')
            site.good("build", "--site", "one")
            yield site
        finally:
            Path("/dev/fuse").chmod(mode)
            shutil.rmtree(folder)


def prefix_of(site: TinySite) -> Path:
    """The prefix of the environment."""
    (prefix,) = site.root.glob("envs/*/*/*")
    return prefix


def temporary(site: TinySite) -> Path:
    """The folder for temporary files of the node."""
    folder = site.folder.parent / "tmp"
    if not folder.exists():
        folder.mkdir()
        folder.chmod(0o1777)
    return folder


def without(folder: Path, *names: str) -> str:
    """A PATH with every program of this one but these."""
    folder.mkdir()
    for place in reversed(os.environ["PATH"].split(":")):
        for path in Path(place).iterdir() if Path(place).is_dir() else ():
            link = folder / path.name
            if path.name not in names:
                link.unlink(missing_ok=True)
                link.symlink_to(path)
    return str(folder)
