"""Backends: each that a stack may name is there."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from golden_files import Words
from provision import backends
from provision.backends import backend_for
from provision.errors import ConfigError
from provision.profile.choices import BACKENDS, BackendName
from provision.profile.stack import Stack, read_stack


def test_every_backend_that_a_stack_may_name_has_a_folder_and_the_other_way_round() -> None:
    folders = {path.parent.name for path in Path(backends.__file__).parent.glob("*/__init__.py")}
    assert set(BACKENDS) == set(get_args(BackendName)) == folders
    for name in BACKENDS:
        assert callable(backend_for(name))


def stack_with(**keys: object) -> Stack:
    """A stack that trains without Horovod, with these keys too."""
    training = {"epochs": 1, "batch_size": 32}
    return read_stack(
        {
            "name": "s",
            "summary": "S",
            "module": "s/1",
            "pythons": ["3.11"],
            "framework": {"name": "tensorflow", "package": "tensorflow", "version": "2.15.1"},
            "proof": {"program": "single", "mnist": training, "digits": training},
            **keys,
        },
        "stacks/s.toml",
    )


def test_a_stack_names_its_backend_and_the_first_is_used_if_it_names_none() -> None:
    assert stack_with().backend == stack_with(backend="venv").backend == "venv" == BACKENDS[0]


def test_a_backend_that_does_not_exist_is_a_fault_of_the_stack(words: Words) -> None:
    with pytest.raises(ConfigError) as error:
        stack_with(backend="vnv")
    (fault,) = error.value.evidence
    assert fault.startswith("backend: ") and "'vnv'" in fault and "`venv`" in fault
    words("stack", fault)
