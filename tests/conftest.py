"""What every test starts from: no setting of the machine's own, a home and a root of its own."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest_plugins = ["parts.fixtures", "parts.users", "golden_files", "kept_results"]

# A script in the background starts its programs with Ctrl-C ignored, and what they start inherits that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# What all users of this machine share. A hint for a root behind a link in /tmp is `chmod o-w /tmp`: no test may run it.
SHARED = {"/", "/tmp", "/var/tmp", "/dev/shm", os.path.realpath(tempfile.gettempdir())}


def leave_shared(event: str, arguments: tuple[Any, ...]) -> None:
    """Let neither a test nor a command that it starts change the mode or owner of a folder that all users share."""
    words: list[str] = []
    if event in ("os.chmod", "os.chown"):
        name = arguments[0]
        words = [os.path.realpath(f"/proc/self/fd/{name}" if isinstance(name, int) else os.fsdecode(name))]
    elif event == "subprocess.Popen":
        command = arguments[1] if isinstance(arguments[1], (str, bytes)) else " ".join(map(os.fsdecode, arguments[1]))
        changes = re.findall(r"\b(?:chmod|chown|chgrp|setfacl) [^\n;&|]*", os.fsdecode(command))
        words = re.split(r"[\s'\"`]+", " ".join(changes))
    for word in words:
        assert (word.rstrip("/") or word) not in SHARED, f"`{word}` is shared by all users: {event}{arguments}"


sys.addaudithook(leave_shared)

NUMBERS = itertools.count()
SCRUBBED = (
    "PROVISION_",
    "SLURM_",
    "SBATCH_",
    "PBS_",
    "LMOD_",
    "LOADEDMODULES",
    "MODULEPATH",
    "HOROVOD_",
    "XDG_DATA_HOME",
)
# How this machine reaches a package index: a real build needs it, everything else must not see it.
INDEX = (
    "PIP_",
    "UV_",
    "SSL_CERT_FILE",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
)


@pytest.fixture(scope="session")
def folder_of_roots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the roots of tests that have no `tmp_path`: most of them write nothing."""
    return tmp_path_factory.mktemp("roots")


@pytest.fixture(autouse=True)
def clean_environment(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, folder_of_roots: Path
) -> Iterator[None]:
    """Nothing of the caller's shell or configuration decides a test; PROVISION_ROOT is a folder of the test's own."""
    uses_files = "tmp_path" in request.fixturenames
    own: Path = request.getfixturevalue("tmp_path") if uses_files else folder_of_roots / str(next(NUMBERS))
    scrubbed = SCRUBBED if request.node.get_closest_marker("real") else (*SCRUBBED, *INDEX)
    for name in list(os.environ):
        if name.startswith(scrubbed) or name in ("NO_COLOR", "FORCE_COLOR"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PROVISION_ROOT", str(own / "root"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(own / "settings"))
    monkeypatch.setattr("provision.machine.configuration.search_path.SITE_WIDE", ())
    if not request.node.get_closest_marker("real"):  # the doctor asks the package index
        monkeypatch.setattr("provision.machine.network.ask_index.ask_index", lambda *_: None)
    yield
    if not uses_files:
        shutil.rmtree(own, ignore_errors=True)


# The files of real tests that take minutes. Workers take whole files, so these begin first and run side by side.
LONGEST = ("test_build_local", "test_spack_slurm", "test_tensorflow_slurm", "test_profiles_slurm", "test_build_slurm")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Quick tests first; then files that take minutes, before those that take seconds."""

    def place(item: pytest.Item) -> tuple[bool, int]:
        slow = any(item.get_closest_marker(name) for name in ("real", "slurm"))
        return slow, LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST)

    items.sort(key=place)
