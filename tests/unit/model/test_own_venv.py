"""What is written for a user's virtual environment, and how one is judged."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from golden_files import Words
from provision.errors import ConfigError
from provision.model.own_venv import (
    Beneath,
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
    "published": BENEATH.environment,
    "recorded": PACKAGES,
    "installed": PACKAGES,
    "own": {"mine": "1.0", "setuptools": "80.0"},
    "origins": {"numpy": "/root/envs/x/lib64/site-packages/numpy/__init__.py"},
    "constrained": True,
    "horovod": None,
}


def failed(**changes: Any) -> dict[str, str]:
    """The message of each check that fails when the good venv has these changes."""
    return {check.name: check.message for check in judge_venv(BENEATH, **{**GOOD, **changes}) if not check.passed}


def test_what_pyvenv_cfg_has_is_read_back() -> None:
    assert read_beneath("home = /usr/bin\nversion = 3.11.7\n" + BENEATH.config()) == BENEATH
    with pytest.raises(ValueError, match="provision-environment"):
        read_beneath("home = /usr/bin\n")


def test_a_venv_on_modules_of_the_site_is_read_back_and_judged(words: Words) -> None:
    names = "Python/3.10.4 TensorFlow/2.11.0"
    of_site = dataclasses.replace(BENEATH, environment=None, module=names, arch="accel")
    assert read_beneath(of_site.config()) == of_site
    assert (of_site.modules, BENEATH.modules) == (("Python/3.10.4", "TensorFlow/2.11.0"), ())
    assert all(check.passed for check in judge_venv(of_site, **{**GOOD, "published": names}))
    horovod = OwnHorovod(
        version="0.28.1", tensorflow="2.15.1", mpi=MPI, mpi_of_stack=(), families=("mpich",), family="mpich"
    )
    own = {**GOOD, "published": names, "own": {"horovod": "0.28.1"}}
    assert all(check.passed for check in judge_venv(of_site, **{**own, "horovod": horovod}))
    other = dataclasses.replace(horovod, family="openmpi")
    (bad,) = [check for check in judge_venv(of_site, **{**own, "horovod": other}) if not check.passed]
    for name in ("mpich", "/opt/mpich/lib/libmpi.so.12", "openmpi"):
        assert name in bad.message
    words("venv", bad.message)


def test_constraints_have_the_stack_and_leave_the_builders_free() -> None:
    written = read_constraints(constraints("x", PACKAGES.items()))
    assert written == {name: version for name, version in PACKAGES.items() if name != "setuptools"}


def test_the_constraints_are_an_address_because_pip_splits_paths_at_blanks() -> None:
    assert pip_config("/a%b/v") == "[install]\nconstraint = file:///a%25b/v/provision-constraints.txt\n"


@pytest.mark.parametrize("path", ["/home/me/my venv", "/a:b", "/a\nb", "relative", "/a$HOME"])
def test_a_folder_that_scripts_cannot_contain_is_refused(path: str) -> None:
    with pytest.raises(ConfigError, match="not a valid folder"):
        refuse_folder(path)


def test_a_good_venv_passes_all_checks() -> None:
    assert failed() == {}


@pytest.mark.parametrize(
    ("changes", "name", "message"),
    [
        ({"published": None}, "environment", ""),
        ({"published": "knl/tensorflow/2.15.1-9"}, "environment", "`knl/tensorflow/2.15.1-9`"),
        ({"installed": {**PACKAGES, "numpy": "2.0"}}, "packages of the environment", "numpy 1.26.4 by 2.0"),
        (
            {"installed": {**PACKAGES, "new": "1"}, "recorded": {"gone": "1"}},
            "packages of the environment",
            "gone 1",
        ),
        ({"own": {"numpy": "2.0"}}, "shadowed packages", "numpy 1.26.4 by 2.0"),
        ({"origins": {"keras": None}}, "imports", "`keras`"),
        ({"origins": {"numpy": "/root/envs/x/lib/site-packages2/numpy"}}, "imports", "site-packages2"),
        ({"constrained": False}, "pip", ""),
    ],
)
def test_each_fault_fails_its_own_check(changes: dict[str, Any], name: str, message: str, words: Words) -> None:
    (found,) = failed(**changes).items()
    assert found[0] == name
    assert message in found[1]
    words("venv", found[1])


def test_an_own_horovod_must_have_the_stacks_tensorflow_and_mpi() -> None:
    good = OwnHorovod(version="0.28.1", tensorflow="2.15.1", mpi=MPI, mpi_of_stack=MPI)
    own = {"horovod": "0.28.1"}
    elsewhere = {"horovod": "/home/me/venv/horovod/__init__.py"}
    assert failed(own=own, origins=elsewhere, horovod=good) == {}
    for horovod, message in (
        (OwnHorovod(version="1", tensorflow="2.14.0", mpi=MPI, mpi_of_stack=MPI), "compiled for TensorFlow 2.14.0"),
        (OwnHorovod(version="1", tensorflow=None, mpi=MPI, mpi_of_stack=MPI), "(not known)"),
        (OwnHorovod(version="1", tensorflow="2.15.1", mpi=(), mpi_of_stack=MPI), "no MPI library that is found"),
        (
            OwnHorovod(version="1", tensorflow="2.15.1", mpi=MPI, mpi_of_stack=()),
            "links an MPI that is not known (/opt/mpich",
        ),
        (OwnHorovod(version="1", tensorflow="2.15.1", mpi=("/x/libmpi.so.40",), mpi_of_stack=MPI), "/x/libmpi.so.40"),
    ):
        (found,) = failed(own=own, origins=elsewhere, horovod=horovod).items()
        assert found[0] == "your Horovod"
        assert message in found[1]
