"""Workers of MultiWorkerMirroredStrategy: they use the names of TensorFlow's resolver, or addresses that all nodes reach."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from parts.paths import PROGRAMS

NAMES = ["n1:12000", "n2:12000"]


@pytest.fixture
def multiworker(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The program, imported as it is when it is started by path."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(PROGRAMS))
    yield importlib.import_module("multiworker")
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("refused", "met", "by", "workers"),
    [
        (None, {"workers": ["n1:1", "n2:2"], "interface": "eth0"}, "SlurmClusterResolver", NAMES),
        (None, {"workers": ["127.0.0.1:1", "127.0.0.1:2"], "interface": "lo"}, "SlurmClusterResolver", NAMES),
        (None, {"workers": ["n1:1", "10.0.0.2:2"], "interface": "eth0"}, "TF_CONFIG", ["n1:1", "10.0.0.2:2"]),
        ("n2 has no address", {"workers": ["n1:1", "n2:2"], "interface": "eth0"}, "TF_CONFIG", ["n1:1", "n2:2"]),
    ],
    ids=["names", "one node", "wrong name", "no name"],
)
def test_names_of_the_resolver_are_used_if_all_nodes_are_reached_by_them(
    multiworker: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    refused: str | None,
    met: dict[str, Any],
    by: str,
    workers: list[str],
) -> None:
    """TensorFlow would wait for a node whose name has the address 127.0.1.1, and not even its watchdog would run."""
    monkeypatch.setattr(multiworker, "slurm_workers", lambda *_: (NAMES, refused))
    monkeypatch.setattr(multiworker, "exchange", lambda *_: [None, refused])
    monkeypatch.setattr(multiworker, "meet", lambda *_: met)
    where = {"rank": 0, "size": 2, "srun": True}
    found = multiworker.find_cluster(None, SimpleNamespace(out="/out", stall=1), {"SLURMD_NODENAME": "n1"}, where)
    assert (found["by"], found["workers"]) == (by, workers)
    assert bool(found.get("not_by_resolver")) == (by == "TF_CONFIG")
