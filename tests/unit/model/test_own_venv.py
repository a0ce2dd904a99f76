"""What is written for a user's virtual environment, and how one is judged."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from golden_files import Words
from provision.errors import ConfigError
from provision.model.own_venv import (
    Beneath,
    Contents,
    OwnHorovod,
    constraints,
    judge_venv,
    pip_config,
    read_beneath,
    read_constraints,
    refuse_folder,
)

BENEATH = Beneath(
    environment="knl/tensorflow/2.15.1-0123456789",
    module="tensorflow/2.15.1",
    prefix="/root/envs/x",
    root="/root",
    site="local",
    minor="3.11",
    folders=("/root/envs/x/lib/site-packages", "/root/envs/x/lib64/site-packages"),
)
PACKAGES = {"numpy": "1.26.4", "tensorflow-cpu": "2.15.1", "horovod": "0.28.1", "setuptools": "69.5.1"}
MPI = ("/opt/mpich/lib/libmpi.so.12",)
GOOD: dict[str, Any] = {
    "recorded": PACKAGES,
    "installed": PACKAGES,
    "own": {"mine": "1.0", "setuptools": "80.0"},
    "origins": {"numpy": "/root/envs/x/lib64/site-packages/numpy/__init__.py"},
    "constrained": True,
    "horovod": None,
}


def failed(**changes: Any) -> dict[str, str]:
    """The message of each check that fails when the good venv has these changes."""
    published = changes.pop("published", BENEATH.environment)
    venv = Contents(**{"beneath": BENEATH, **GOOD, **changes})
    return {check.name: check.message for check in judge_venv(venv, published) if not check.passed}


def test_what_pyvenv_cfg_has_is_read_back() -> None:
    assert read_beneath("home = /usr/bin\nversion = 3.11.7\n" + BENEATH.config()) == BENEATH
    with pytest.raises(ValueError, match="provision-environment"):
        read_beneath("home = /usr/bin\n")


def test_a_venv_on_modules_of_the_site_is_read_back_and_judged(words: Words) -> None:
    names = "Python/3.10.4 TensorFlow/2.11.0"
    of_site = dataclasses.replace(BENEATH, environment=None, module=names, arch="accel")
    assert read_beneath(of_site.config()) == of_site
    assert (of_site.modules, BENEATH.modules) == (("Python/3.10.4", "TensorFlow/2.11.0"), ())
    horovod = OwnHorovod(
        version="0.28.1",
        built_for={"TensorFlow": "2.15.1"},
        mpi=MPI,
        mpi_of_stack=(),
        families=("mpich",),
        family="mpich",
    )
    other = dataclasses.replace(horovod, family="openmpi")
    for changes, wrong in (({}, 0), ({"horovod": horovod}, 0), ({"horovod": other}, 1)):
        own = {"own": {"horovod": "0.28.1"}} if changes else {}
        bad = failed(beneath=of_site, published=names, **own, **changes)
        assert len(bad) == wrong
    words("venv", bad["your Horovod"])


def test_constraints_have_the_stack_and_leave_the_builders_free() -> None:
    written = read_constraints(constraints("x", PACKAGES.items()))
    assert written == {name: version for name, version in PACKAGES.items() if name != "setuptools"}


def test_the_constraints_are_an_address_because_pip_splits_paths_at_blanks() -> None:
    assert pip_config("/a%b/v") == "[install]\nconstraint = file:///a%25b/v/provision-constraints.txt\n"


@pytest.mark.parametrize("path", ["/home/me/my venv", "/a:b", "/a\nb", "relative", "/a$HOME"])
def test_a_folder_that_scripts_cannot_contain_is_refused(path: str) -> None:
    with pytest.raises(ConfigError, match="not a valid folder"):
        refuse_folder(path)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, None),
        ({"published": None}, "environment"),
        ({"published": "knl/tensorflow/2.15.1-9"}, "environment"),
        ({"installed": {**PACKAGES, "numpy": "2.0"}}, "packages of the environment"),
        ({"installed": {**PACKAGES, "new": "1"}, "recorded": {"gone": "1"}}, "packages of the environment"),
        ({"own": {"numpy": "2.0"}}, "shadowed packages"),
        ({"origins": {"keras": None}}, "imports"),
        ({"origins": {"numpy": "/root/envs/x/lib/site-packages2/numpy"}}, "imports"),
        ({"constrained": False}, "pip"),
    ],
)
def test_each_fault_fails_its_own_check(changes: dict[str, Any], name: str | None, words: Words) -> None:
    found = failed(**changes)
    assert list(found) == ([name] if name else [])
    if name:
        words("venv", found[name])


@pytest.mark.parametrize(
    ("tensorflow", "mpi", "mpi_of_stack", "message"),
    [
        ("2.15.1", MPI, MPI, None),
        ("2.14.0", MPI, MPI, "compiled for TensorFlow 2.14.0"),
        (None, MPI, MPI, "no known framework"),
        ("2.15.1", (), MPI, "no MPI library that is found"),
        ("2.15.1", MPI, (), "links an MPI that is not known (/opt/mpich"),
        ("2.15.1", ("/x/libmpi.so.40",), MPI, "/x/libmpi.so.40"),
    ],
)
def test_an_own_horovod_must_have_the_stacks_tensorflow_and_mpi(
    tensorflow: str | None, mpi: tuple[str, ...], mpi_of_stack: tuple[str, ...], message: str | None
) -> None:
    horovod = OwnHorovod(
        version="0.28.1", built_for={"TensorFlow": tensorflow} if tensorflow else {}, mpi=mpi, mpi_of_stack=mpi_of_stack
    )
    elsewhere = {"horovod": "/home/me/venv/horovod/__init__.py"}
    found = failed(own={"horovod": "0.28.1"}, origins=elsewhere, horovod=horovod)
    assert list(found) == (["your Horovod"] if message else [])
    assert message is None or message in found["your Horovod"]
