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

from parts.modules import ENVIRONMENT_MODULES, LMOD, bash, needed
from parts.paths import REPOSITORY
from parts.provision import Tool
from parts.tiny import TinySite, make_site
from parts.tiny_cluster import TinyCluster

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


def differences(tool: Tool) -> dict[str, list[str]]:
    """What differs of each environment, without libraries of the system, which are newer here than at the recording."""
    verified: Any = json.loads(tool.run("verify", "--all", "--site", "both", "--json").stdout)
    return {
        one["environment"]: [
            one["subject"] for one in one["differences"] if not one["subject"].startswith(("/usr/lib/", "/lib/"))
        ]
        for one in verified["result"]["environments"]
    }


def test_a_root_of_an_older_tool_is_listed_verified_rolled_back_and_pruned(tool: Tool) -> None:
    before = rows(tool)
    assert (before[NEW], before[OLD]) == ("published", "proved")
    assert sorted(before.values()) == ["proved", "proved", "published", "published"]
    assert set(map(len, differences(tool).values())) == {0}
    tool.good("rollback", "--site", "both", "--arch", "a")
    after = rows(tool)
    assert (after[NEW], after[OLD]) == ("proved", "published")
    words = ("--older", "0", "--keep", "0", "--generations", "0", "--yes")
    tool.good("prune", "--site", "both", *words)
    left = rows(tool)
    assert NEW not in left
    assert sorted(left.values()) == ["published", "published"]
    again = differences(tool)
    # The lock is the newer one.
    assert again[OLD] and [found for name, found in again.items() if name != OLD] == [[]]
    assert not (PLACE / "root" / "envs" / NEW).exists()


def test_a_record_that_only_older_tools_write_is_verified_like_the_others(tool: Tool) -> None:
    path = PLACE / "root" / "envs" / NEW / ".provision" / "provenance.json"
    path.write_text(path.read_text() + "\n")
    verified = json.loads(tool.run("verify", "--all", "--site", "both", "--json").stdout)
    (broken,) = [one for one in verified["result"]["environments"] if one["condition"] == "broken"]
    assert (broken["environment"], "provenance.json" in json.dumps(broken)) == (NEW, True)


@pytest.mark.parametrize("system", [LMOD, ENVIRONMENT_MODULES], ids=["lmod", "environment-modules"])
def test_a_module_of_an_older_tool_loads(tool: Tool, system: Any) -> None:
    kind = "lua" if needed(system).name == "lmod" else "tcl"
    program = "import numpy, horovod.tensorflow; print(numpy.__version__)"
    script = f"set -e\nmodule load tensorflow/2.21.0\npython -c '{program}'\n"
    script += f"{' '.join(tool.argv('verify', '--loaded'))}\n"
    done = bash(script, system, PLACE / "root" / "modules" / "a" / kind)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("1.1\n")


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """A checkout of the older tool, which the Python of the tests can run."""
    done = subprocess.run(["git", "-C", str(REPOSITORY), "archive", "8341fc1"], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("the history of the repository is not here")
    (tmp_path / "older").mkdir()
    subprocess.run(["tar", "-x", "-C", str(tmp_path / "older")], input=done.stdout, check=True)
    return tmp_path / "older"


@pytest.fixture
def site(tmp_path: Path) -> TinySite:
    """A site for which everything was fetched, and nothing is built."""
    return make_site(tmp_path / "site", compiled={})


def test_a_build_job_that_the_older_tool_wrote_runs_with_this_one(site: TinySite, older: Path) -> None:
    """The command line in the script, and the plan in it, which is compared with that of the node."""
    TinyCluster(site=site, slurm=None).write_profile()  # type: ignore[arg-type]
    words = ("job", "build", "--site", "cluster", "--arch", "a")
    process = site.start(*words, PYTHONPATH=f"{older}:{older / 'tests'}")
    script, error = process.communicate()
    assert "--no-wait" in script and "PROVISION_PLAN" in script, error
    environ = site.environ(SLURM_JOB_ID="42", SLURMD_NODENAME="n1")
    done = subprocess.run(
        ["bash"], input=script, env=environ, cwd=site.folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(site.store.pointers()) == 1
