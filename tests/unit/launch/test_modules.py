"""Scripts that load modules: from a clean state, in the order that the site needs."""

from __future__ import annotations

import pytest

from provision.launch.modules import (
    FAILED_MODULE,
    clean_environ,
    drop_module_state,
    failed_module,
    load_script,
    parse_environment,
)
from provision.profile.module_system import ModuleSystem


@pytest.mark.parametrize(
    ("reset", "first"), [("purge", "module purge"), ("reset", "module reset"), ("none", "module --force unload")]
)
def test_loading_begins_as_the_site_has_it(reset: str, first: str) -> None:
    system = ModuleSystem(name="lmod", init="/i", path=(), reset=reset)  # type: ignore[arg-type]
    script = load_script(system, ("gcc/12",), unload=("atp", "it's"))
    steps = [line for line in script.splitlines() if line.startswith("module ")]
    assert steps[0].startswith(first)
    assert "module --force unload 'it'\"'\"'s'" in script
    assert script.index("module --force unload atp") < script.index("module load gcc/12")
    assert ("module purge" in script) is (reset == "purge")


def test_what_would_change_a_build_is_dropped_and_the_index_is_kept() -> None:
    environ = {
        "HOME": "/site/home/a",
        "CXXFLAGS": "-O0",
        "PYTHONPATH": "/site/mine",
        "LD_LIBRARY_PATH": "/site/lib",
        "HOROVOD_WITHOUT_MPI": "1",
        "CMAKE_GENERATOR": "Make",
        "PIP_INDEX_URL": "https://index.example",
        "PIP_TARGET": "/site/mine",
        "UV_CACHE_DIR": "/site/cache",
        "UV_SYSTEM_PYTHON": "1",
    }
    kept = {"HOME": "/site/home/a", "PIP_INDEX_URL": "https://index.example", "UV_CACHE_DIR": "/site/cache"}
    assert clean_environ(environ) == {**kept, "PYTHONNOUSERSITE": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def test_the_state_of_a_module_system_is_dropped_and_nothing_else() -> None:
    state = {"LOADEDMODULES": "gcc/12", "MODULEPATH": "/m", "LMOD_CMD": "/l", "__LMOD_REF_COUNT_PATH": "/x:1"}
    assert drop_module_state({**state, "PATH": "/usr/bin"}) == {"PATH": "/usr/bin"}


def test_a_script_names_the_module_that_cannot_be_loaded() -> None:
    system = ModuleSystem(name="lmod", init="/i", path=("/site/my modules",))
    script = load_script(system, ("gcc/12", "it's"))
    assert "module use '/site/my modules'" in script
    assert script.index("module load gcc/12") < script.index("module load 'it'\"'\"'s'")
    lines = ["Lmod has detected the following error", f"{FAILED_MODULE}it's"]
    assert failed_module(lines) == "it's"
    assert failed_module(lines[:1]) is None


@pytest.mark.parametrize(
    ("text", "environ"),
    [
        ("A=1\0B=x=y\0", {"A": "1", "B": "x=y"}),
        ("A=line\nbreak\0EMPTY=\0", {"A": "line\nbreak", "EMPTY": ""}),
        ("", {}),
    ],
)
def test_an_environment_is_read_back_whatever_its_values_hold(text: str, environ: dict[str, str]) -> None:
    assert parse_environment(text) == environ
