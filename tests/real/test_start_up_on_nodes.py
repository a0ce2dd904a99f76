"""The model of `provision startup`, tried on emulated nodes that share a file system with the delays of a metadata server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from parts.paths import REPOSITORY

pytestmark = pytest.mark.real

TOOL = REPOSITORY / "tools" / "start_up" / "emulate.py"
PROGRAMS = ("gcc", "pkg-config", "chrt", "squashfuse_ll", "mksquashfs")
NAMES = 100


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that nodes share, with half of the names of a list, and an image of them."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    found = subprocess.run(("pkg-config", "--exists", "fuse3"), check=False) if "pkg-config" not in missing else None
    if missing or found is None or found.returncode or not Path("/dev/fuse").exists() or os.geteuid() != 0:
        pytest.skip(f"needs root, /dev/fuse, libfuse3-dev and {' '.join(missing or PROGRAMS)}")
    made = tmp_path_factory.mktemp("shared")
    (made / "lib").mkdir()
    for number in range(0, NAMES, 2):
        (made / "lib" / f"{number}.py").write_text("")
    (made / "names").write_text("\n".join(f"{'so'[number % 3 == 0]} lib/{number}.py" for number in range(NAMES)))
    subprocess.run(
        ("mksquashfs", made / "lib", made / "image", "-quiet", "-no-progress", "-keep-as-directory"), check=True
    )
    return made


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("plain files", ("--rate", "1000", "--latency-us", "2000")),
        ("plain files, kept by a node", ("--rate", "400", "--latency-us", "2000", "--keep-s", "60")),
        ("image", ("--rate", "1000", "--latency-us", "2000", "--image", "image", "--pause-us", "20000")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_was_fitted_at_1_and_4_nodes_predicts_16(folder: Path, kind: str, more: tuple[str, ...]) -> None:
    argv = (sys.executable, TOOL, "--list", folder / "names", "--folder", folder, "--nodes", "1,4,16", *more)
    environ = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(argv, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    one, four, sixteen = map(json.loads, done.stdout.splitlines())
    if not sixteen["counts"]:
        pytest.skip(f"the CPUs were {sixteen['busy']:.0%} busy, so the point does not count")
    assert abs(sixteen["error"]) < 0.25, (one, four, sixteen)
    if kind == "image":
        assert sixteen["seconds"] < 1.5 * one["seconds"], "as long on 16 nodes as on one"
    else:
        assert sixteen["seconds"] > 3 * four["seconds"], "all ranks wait for one server"
