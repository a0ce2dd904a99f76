"""Ranks of DDP: the backend by which they exchange, for the torch and the device that they have."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from golden_files import Words
from parts.paths import PROGRAMS

Choose = Callable[..., str]


@pytest.fixture
def choose(monkeypatch: pytest.MonkeyPatch) -> Iterator[Choose]:
    """`ddp.choose_backend` with a torch that has these backends."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(PROGRAMS))
    ddp: Any = importlib.import_module("ddp")

    def call(asked: str, device: str, *has: str, distributed: bool = True) -> str:
        checks = {f"is_{name}_available": lambda name=name: name in has for name in ("nccl", "mpi")}
        gloo = {"ProcessGroupGloo": object} if "gloo" in has else {}
        of_torch = SimpleNamespace(is_available=lambda: distributed, **checks, **gloo)
        torch = SimpleNamespace(distributed=of_torch, __version__="1.13.1")
        return str(ddp.choose_backend(torch, asked, SimpleNamespace(type=device)))

    yield call
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("asked", "device", "backend"),
    [("AUTO", "cpu", "gloo"), ("AUTO", "cuda", "nccl"), ("GLOO", "cuda", "gloo"), ("MPI", "cpu", "mpi")],
)
def test_gpus_exchange_by_nccl_and_cpus_by_gloo_unless_another_is_asked_for(
    choose: Choose, asked: str, device: str, backend: str
) -> None:
    assert choose(asked, device, "gloo", "nccl", "mpi") == backend


@pytest.mark.parametrize(
    ("asked", "device", "has"),
    [("AUTO", "cuda", ("gloo",)), ("MPI", "cpu", ("gloo",)), ("AUTO", "cpu", ()), ("NCCL", "cpu", ("gloo", "nccl"))],
)
def test_a_backend_that_this_torch_or_device_does_not_have_is_an_error(
    choose: Choose, asked: str, device: str, has: tuple[str, ...], words: Words
) -> None:
    with pytest.raises(RuntimeError) as caught:
        choose(asked, device, *has)
    words("test", str(caught.value))


def test_a_torch_that_trains_in_one_process_only_is_an_error(choose: Choose, words: Words) -> None:
    with pytest.raises(RuntimeError) as caught:
        choose("AUTO", "cpu", distributed=False)
    words("test", str(caught.value))
