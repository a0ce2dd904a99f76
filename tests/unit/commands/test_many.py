"""Room for many: no verb reads a file of the root twice, and a plan reads nothing of other modules. No test asserts a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest

from parts.cli import call
from parts.published import put_proved
from provision.machine.root.publishing import Publisher
from provision.machine.root.store import Store
from provision.machine.sharing import shared_root
from provision.model.layout import EnvironmentId, Layout

Reads = Callable[..., Counter[str]]


@pytest.fixture
def reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reads:
    """Runs a verb on a root with two modules and four generations; returns how often it reads each file below the root."""
    monkeypatch.setenv("PROVISION_ROOT", str(tmp_path))
    store = Store(Layout(PurePosixPath(tmp_path)))
    for version, fingerprint in (("2.21.0", "0"), ("2.21.0", "1"), ("2.15.1", "2"), ("2.15.1", "3")):
        env = EnvironmentId("knl", "tensorflow", version, fingerprint * 10)
        put_proved(store, env)
        Publisher(store).publish(env)
    found: Counter[str] = Counter()
    read = shared_root.read_regular

    def counted(path: str | Path, *, limit: int, follow: bool) -> object:
        found[str(Path(path).relative_to(tmp_path))] += 1
        return read(path, limit=limit, follow=follow)

    def run(*words: str) -> Counter[str]:
        with monkeypatch.context() as patched:
            patched.setattr(shared_root, "read_regular", counted)
            assert call(*words) == 0
        return found

    return run


def test_a_plan_reads_no_environment_of_another_module(reads: Reads) -> None:
    names = {name for name in reads("plan", "--stack", "tensorflow-2.21.0") if name.startswith("envs/")}
    assert names and all("/2.21.0-" in name for name in names)


def test_a_list_reads_each_record_once_and_no_receipt(reads: Reads) -> None:
    found = reads("list", "--json")
    assert {name: times for name, times in found.items() if times > 1 and name.endswith("/record.json")} == {}
    assert not [name for name in found if "/receipts/" in name or name.endswith("/verdict.json")]


def test_a_prune_reads_each_generation_and_each_record_once(reads: Reads) -> None:
    found = reads("prune", "--json")
    assert any(name.startswith("modules/.generations/") for name in found)
    assert {name: times for name, times in found.items() if times > 1} == {}
