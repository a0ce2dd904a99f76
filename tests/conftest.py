"""What every test starts from: no setting of the machine's own, a home and a root of its own."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

pytest_plugins = ["parts.fixtures", "parts.users", "parts.templates", "golden_files", "kept_results"]

# A script in the background starts its programs with Ctrl-C ignored, and what they start inherits that.
signal.signal(signal.SIGINT, signal.default_int_handler)

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


@pytest.fixture(autouse=True)
def clean_environment(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of the caller's shell or configuration decides a test; PROVISION_ROOT is a folder of the test's own."""
    scrubbed = SCRUBBED if request.node.get_closest_marker("real") else (*SCRUBBED, *INDEX)
    for name in list(os.environ):
        if name.startswith(scrubbed) or name in ("NO_COLOR", "FORCE_COLOR"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PROVISION_ROOT", str(tmp_path / "root"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    monkeypatch.setattr("provision.machine.configuration.search_path.SITE_WIDE", ())


# The files of real tests that take minutes. Workers take whole files, so these begin first and run side by side.
LONGEST = ("test_build_local", "test_spack_slurm", "test_tensorflow_slurm", "test_profiles_slurm", "test_build_slurm")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Quick tests first; then files that take minutes, before those that take seconds."""

    def place(item: pytest.Item) -> tuple[bool, int]:
        slow = any(item.get_closest_marker(name) for name in ("real", "slurm"))
        return slow, LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST)

    items.sort(key=place)
