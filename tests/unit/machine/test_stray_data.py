"""A wheel whose data folder has another package's name, as that of `intel-tensorflow` 1.15.2, by the real uv and pip."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from parts.tiny import make_wheel
from provision.machine.install.source_tree import place_data

HEADER = "stray_core/include/core/op.h"


def files_of(folder: Path) -> dict[str, str]:
    """The content of the files of the package, with the list of them; installers write more files of their own."""
    lists = {line.split(",")[0] for line in (folder / "intel_stray-1.0.dist-info" / "RECORD").read_text().splitlines()}
    return {
        str(path.relative_to(folder)): "listed" if str(path.relative_to(folder)) in lists else "not listed"
        for path in folder.rglob("*")
        if path.is_file() and path.parts[-2].startswith(("stray", "core", "include"))
    }


def test_what_uv_leaves_in_the_data_folder_is_put_where_pip_puts_it(tmp_path: Path) -> None:
    uv = shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv is None:
        pytest.skip("there is no uv beside this Python: it is of the extra `fast`")
    content = {"stray_core/__init__.py": "", f"stray-1.0.data/purelib/{HEADER}": "int op();\n"}
    wheel = make_wheel(tmp_path, "intel_stray", "1.0", content)
    by_pip, by_uv = tmp_path / "pip", tmp_path / "uv"
    options = ("--no-deps", "--no-index", "--target")
    subprocess.run((sys.executable, "-m", "pip", "install", "-qq", *options, by_pip, wheel), check=True)
    subprocess.run((uv, "pip", "install", "-q", "--no-cache", *options, by_uv, wheel), check=True)
    assert not (by_uv / HEADER).exists(), "uv has learned it: the operation `PlaceData` can go"
    place_data(by_uv)
    assert (by_uv / HEADER).read_text() == "int op();\n"
    assert not list(by_uv.glob("*.data"))
    assert files_of(by_uv) == files_of(by_pip)
    assert set(files_of(by_uv).values()) == {"listed"}
    place_data(by_uv)
