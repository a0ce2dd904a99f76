"""Builds on a bare machine that go wrong, and go on: with the small packages of `parts/tiny.py`, by the real uv and g++.

What the packages are makes no difference to these tests. Kills at every step, and at random moments, are in `test_torture.py`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from parts.disks import loop_disk, mounted
from parts.provision import Tool
from parts.tiny import TAG, TinySite, make_site
from parts.tiny_cluster import wait_for
from parts.torture import STEPS
from provision.machine.files.disk import sync_file_system

pytestmark = pytest.mark.real

# A package index that cannot be reached. Only before another try does pip print why.
NOWHERE = {
    "UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple",
    "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
    "UV_HTTP_RETRIES": "0",
    "PIP_RETRIES": "1",
    "PIP_CONFIG_FILE": os.devnull,
}


@pytest.fixture
def site(tmp_path: Path) -> TinySite:
    """A site for which everything was fetched, and nothing is built."""
    return make_site(tmp_path / "site")


def actions(site: TinySite) -> dict[str, str]:
    """What the steps of the plan would do."""
    steps = json.loads(site.run("plan", "--site", "one", "--json").stdout)["result"]["steps"]
    return {step["name"]: step["action"] for step in steps}


def start(site: TinySite, said: Path) -> subprocess.Popen[str]:
    """Start a build that writes what it says to a file."""
    with said.open("w") as file:
        words = site.argv("build", "--site", "one")
        return subprocess.Popen(words, env=site.environ(), stdin=subprocess.DEVNULL, stderr=file, text=True)


def start_until_its_proof(site: TinySite, said: Path) -> subprocess.Popen[str]:
    """Start a build whose proof waits."""
    (site.folder / "hold").touch()
    process = start(site, said)
    wait_for("the proof", (site.folder / "held").exists)
    return process


def test_two_at_once_after_the_prefix_is_gone_one_builds_with_the_cached_wheel_and_one_waits(
    site: TinySite, tmp_path: Path
) -> None:
    """Both end well, one built it, the other waited and says for whom; Horovod is not compiled again."""
    assert "compile: done" in site.good("build", "--site", "one").stderr
    (prefix,) = site.root.glob("envs/*/*/*")
    shutil.rmtree(prefix)
    assert list(actions(site).values())[:4] == [*["create"] * 3, "reuse"]
    builds, waits = tmp_path / "builds", tmp_path / "waits"
    both = [start_until_its_proof(site, builds), start(site, waits)]
    # The one that waits shows the steps of the other one, indented; of the last ones only what it sees before the lock is free.
    wait_for("the one that waits", lambda: re.search(r"^  \[\d+/\d+\] proof: ", waits.read_text(), re.MULTILINE))
    (site.folder / "hold").unlink()
    assert [process.wait(timeout=120) for process in both] == [0, 0], builds.read_text() + waits.read_text()
    assert f"process {both[0].pid}" in waits.read_text()
    assert re.findall(r"^\[\d+/\d+\] proof: done", builds.read_text(), re.MULTILINE)
    assert "compile: done" not in builds.read_text() + waits.read_text()
    assert site.good("build", "--site", "one").stderr.startswith("nothing to do")


def test_ctrl_c_ends_what_was_started_and_says_how_to_go_on(site: TinySite, tmp_path: Path) -> None:
    """Exit 130, no process of the build left."""
    process = start_until_its_proof(site, tmp_path / "said")
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    assert "run the same command again" in (tmp_path / "said").read_text()
    running = subprocess.run(["pgrep", "-f", str(site.root / "envs")], capture_output=True, text=True, check=False)
    assert running.stdout == ""


@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_a_hash_that_is_not_the_locks_stops_the_installation(site: TinySite, installer: str) -> None:
    """A package on the index was changed, or the lock was tampered with."""
    lock = site.folder / "config" / "requirements" / f"tiny-{TAG}.txt"
    lock.write_text(re.sub(r"(numpy==.*\n +--hash=sha256:)\w+", r"\g<1>" + "0" * 64, lock.read_text()))
    wheels = str(site.folder / "wheels")
    index = {**NOWHERE, "UV_OFFLINE": "1", "UV_FIND_LINKS": wheels, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": wheels}
    done = site.run("build", "--site", "one", "--json", **index, PROVISION_INSTALLER=installer)
    error = json.loads(done.stdout)["error"]
    assert done.returncode == 1
    assert error["message"].startswith("step `install` failed: a downloaded file differs from the one that was locked")
    assert any("numpy" in line for line in error["evidence"])
    assert error["log"] and error["hint"]


@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_an_index_that_cannot_be_reached_is_reported_as_that(site: TinySite, tmp_path: Path, installer: str) -> None:
    """A node without network for which nothing was fetched, or a broken mirror."""
    site.write_profile("one", tmp_path / "empty")
    done = site.run("build", "--site", "one", **NOWHERE, PROVISION_INSTALLER=installer)
    assert done.returncode == 1
    assert "the package index cannot be reached" in done.stderr
    assert "PIP_INDEX_URL" in done.stderr


def test_a_compile_error_shows_the_telling_lines_and_the_log(site: TinySite, tmp_path: Path) -> None:
    """A compiler that works, but not for one file of Horovod."""
    compiler = tmp_path / "bin" / "g++"
    compiler.parent.mkdir()
    compiler.write_text(
        '#!/bin/bash\ncase "$*" in *sums.cc*) echo "sums.cc:7:1: fatal error: no such luck" >&2; exit 1;; esac\n'
        f'exec {shutil.which("g++")} "$@"\n'
    )
    compiler.chmod(0o755)
    site.write_profile("other", site.root, f'[archs.native.compiler]\ncxx = "{compiler}"\n')
    done = site.run("build", "--site", "other", PATH=f"{compiler.parent}:{os.environ['PATH']}")
    assert done.returncode == 1
    assert "step `compile` failed" in done.stderr
    assert "sums.cc:7:1: fatal error: no such luck" in done.stderr
    log = Path(next(line.split("log: ")[1] for line in done.stderr.splitlines() if "log: " in line))
    assert "no such luck" in log.read_text()


def put_compilers(site: TinySite, folder: Path, **first: str) -> None:
    """The site compiles with programs that do this in bash at a file of Horovod (`cxx`) and at that of mpi4py (`cc`)."""
    lines = ["[archs.native.compiler]"]
    for name, real, source in (("cxx", "g++", "sums.cc"), ("cc", "gcc", "MPI.c")):
        program = folder / real
        waits = f'case "$*" in *{source}*) {first[name]};; esac'
        program.write_text(f'#!/bin/bash\n{waits}\nexec {shutil.which(real)} "$@"\n')
        program.chmod(0o755)
        lines.append(f'{name} = "{program}"')
    site.write_profile("one", site.root, "\n".join([*lines, ""]))


@pytest.fixture
def compiling(site: TinySite, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A build of which two compilers run, for Horovod and for mpi4py, as long as there is a file `hold`."""
    (tmp_path / "hold").touch()
    wait = f"touch {tmp_path}/$(basename $0).waits; while [ -e {tmp_path}/hold ]; do sleep 0.05; done"
    put_compilers(site, tmp_path, cxx=wait, cc=wait)
    process = start(site, tmp_path / "said")
    try:
        wait_for("both compilers", lambda: all((tmp_path / f"{name}.waits").exists() for name in ("gcc", "g++")))
        yield process
    finally:
        process.kill()
        process.wait()


def processes_of(site: TinySite) -> str:
    """The processes that builds below the root started."""
    return subprocess.run(["pgrep", "-f", str(site.root)], capture_output=True, text=True, check=False).stdout


def test_ctrl_c_while_two_packages_are_compiled_ends_both(site: TinySite, compiling: subprocess.Popen[str]) -> None:
    compiling.send_signal(signal.SIGINT)
    assert compiling.wait(timeout=60) == 130
    assert processes_of(site) == ""


def test_a_build_that_was_killed_while_two_packages_were_compiled_goes_on(
    site: TinySite, compiling: subprocess.Popen[str], tmp_path: Path
) -> None:
    compiling.kill()
    compiling.wait()
    (tmp_path / "hold").unlink()
    said = site.good("build", "--site", "one").stderr
    assert "compile: done" in said and "install: done" not in said
    assert processes_of(site) == ""


def test_the_failure_of_one_of_two_compilations_names_that_one_and_ends_the_other(
    site: TinySite, tmp_path: Path
) -> None:
    put_compilers(site, tmp_path, cxx="sleep 300", cc='echo "MPI.c:9:1: error: no such luck" >&2; exit 1')
    done = site.run("build", "--site", "one")
    assert done.returncode == 1
    assert "step `compile-mpi4py` failed" in done.stderr and "MPI.c:9:1: error: no such luck" in done.stderr
    assert "compile-mpi4py.log" in done.stderr
    assert processes_of(site) == ""
    (environment,) = (str(path.relative_to(site.root / "envs")) for path in site.root.glob("envs/*/*/*"))
    assert "no such luck" in site.run("explain", environment, "--site", "one").stdout


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 100 MB."""
    yield from mounted(tmp_path / "disk", "size=100m")


def test_a_disk_that_is_too_small_is_reported_before_anything_happens(small_disk: Path) -> None:
    """For TensorFlow, which needs more. Nothing is written."""
    done = Tool(small_disk).run("build")
    assert done.returncode == 1
    assert " MB left; the build needs about " in done.stderr
    assert not any(small_disk.iterdir())


def test_a_disk_that_fills_up_midway_is_reported_and_the_build_goes_on_when_there_is_room(
    site: TinySite, small_disk: Path
) -> None:
    """The check beforehand is left out: another process filled the disk meanwhile."""
    root = small_disk / "root"
    shutil.copytree(site.root, root)
    site.write_profile("disk", root)
    (small_disk / "filler").write_bytes(bytes(shutil.disk_usage(small_disk).free - 2**19))
    done = site.run("build", "--site", "disk")
    assert done.returncode == 1, done.stderr
    assert "disk or file system is full" in done.stderr
    assert not (root / "modules").exists()
    (small_disk / "filler").unlink()
    site.good("build", "--site", "disk")


def empty_files(root: Path) -> set[str]:
    """The files of the environment that have no content, without its records."""
    (prefix,) = root.glob("envs/*/*/*")
    files = (path for path in prefix.rglob("*") if path.is_file() and ".provision" not in path.parts)
    return {str(path.relative_to(prefix)) for path in files if not path.stat().st_size}


def test_after_a_power_cut_at_each_receipt_the_next_build_goes_on(site: TinySite, tmp_path: Path) -> None:
    """The disk then has what was synced. Each build begins on the disk that the cut before left, and is cut off in its turn."""
    site.good("build", "--site", "one")
    disk, image = tmp_path / "disk", tmp_path / "image"
    mounting = loop_disk(image, disk, "64M")
    next(mounting)
    root = disk / "root"
    shutil.copytree(site.root / "cache", root / "cache")
    sync_file_system(disk)
    site.write_profile("disk", root)
    words = ("build", "--site", "disk")
    try:
        for step in STEPS:
            stopped = site.environ(TINY_KILL=f"SIGSTOP:finished {step}")
            process = subprocess.Popen(site.argv(*words), env=stopped, start_new_session=True)
            assert os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1]), step
            after = image.with_name(f"after-{step}")
            subprocess.run(["cp", "--sparse=always", str(image), str(after)], check=True)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            assert next(mounting, None) is None
            disk.rmdir()
            image, mounting = after, loop_disk(after, disk)
            next(mounting)
        site.good(*words)
        site.good("verify", "--all", "--site", "disk")
        assert empty_files(root) == empty_files(site.root)
    finally:
        next(mounting, None)
