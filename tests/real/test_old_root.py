"""A root that commit 8341fc1 made: later tools list, verify, load, roll back and prune it.

It was made as `tests/parts/tiny.py` of that commit makes it, at the one place at which its paths are right: site `both`, archs
`a` and `b`, one build of each, and `provision upgrade` to another NumPy.
"""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from parts.modules import ENVIRONMENT_MODULES, LMOD, bash
from parts.provision import Tool

pytestmark = pytest.mark.real

PLACE = Path("/tmp/provision-8341fc1")
ARCHIVE = Path(__file__).parents[1] / "recorded" / "root-8341fc1.tar.xz"
PYTHON, VERSION = "/usr/bin/python3.11", "Python 3.11.2"
OLD, NEW = "a/tensorflow/2.21.0-9d19224fa8", "a/tensorflow/2.21.0-5301f59b98"


@pytest.fixture
def tool() -> Iterator[Tool]:
    """The present tool, with the old root unpacked at its place; a lock keeps other runs of the tests away."""
    done = (
        subprocess.run([PYTHON, "--version"], capture_output=True, text=True, check=False)
        if Path(PYTHON).exists()
        else None
    )
    if done is None or done.stdout.strip() != VERSION:
        pytest.skip(f"the old root is of {VERSION} at {PYTHON}, which is not here")
    with PLACE.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(PLACE, ignore_errors=True)
        with tarfile.open(ARCHIVE) as file:
            file.extractall(PLACE, filter="tar")
        yield Tool(PLACE / "root", {"PROVISION_CONFIG": str(PLACE / "config")})
        shutil.rmtree(PLACE, ignore_errors=True)


def rows(tool: Tool) -> dict[str, str]:
    """The state of each environment."""
    listed: Any = json.loads(tool.good("list", "--site", "both", "--json"))["result"]["environments"]
    return {row["environment"]: row["state"] for row in listed}


def test_a_root_of_an_older_tool_is_listed_verified_rolled_back_and_pruned(tool: Tool) -> None:
    before = rows(tool)
    assert (before[NEW], before[OLD]) == ("published", "proved")
    assert sorted(before.values()) == ["proved", "proved", "published", "published"]
    verified = tool.run("verify", "--all", "--site", "both", "--json")
    assert verified.returncode == 0, verified.stdout
    tool.good("rollback", "--site", "both", "--arch", "a")
    after = rows(tool)
    assert (after[NEW], after[OLD]) == ("proved", "published")
    words = ("--older", "0", "--keep", "0", "--generations", "0", "--yes")
    tool.good("prune", "--site", "both", *words)
    left = rows(tool)
    assert NEW not in left
    assert sorted(left.values()) == ["published", "published"]
    again = json.loads(tool.run("verify", "--all", "--site", "both", "--json").stdout)["result"]["environments"]
    # The lock is the newer one.
    assert {one["environment"]: one["condition"] for one in again}[OLD] == "drifted"
    assert [one["condition"] for one in again if one["environment"] != OLD] == ["fresh"]
    assert not (PLACE / "root" / "envs" / NEW).exists()


@pytest.mark.parametrize("system", [LMOD, ENVIRONMENT_MODULES], ids=["lmod", "environment-modules"])
def test_a_module_of_an_older_tool_loads(tool: Tool, system: Any) -> None:
    if system is None:
        pytest.skip("this module system is not installed here (`.ci/install` brings it)")
    kind = "lua" if system.name == "lmod" else "tcl"
    program = "import numpy, horovod.tensorflow; print(numpy.__version__)"
    script = f"set -e\nmodule load tensorflow/2.21.0\npython -c '{program}'\n"
    script += f"{' '.join(tool.argv('verify', '--loaded'))}\n"
    done = bash(script, system, PLACE / "root" / "modules" / "a" / kind)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("1.1\n")
