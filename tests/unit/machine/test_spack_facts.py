"""What is wrong with the site's Spack is known before a plan is made."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path, PurePosixPath

import pytest

from parts.profiles import profile
from parts.records import make_record
from provision.machine.configuration.shipped import load_stack
from provision.machine.probes.probe import Probes
from provision.machine.root.spack import SpackSetup, find_spack, read_setup, seconds_before, write_setup
from provision.machine.root.store import Store
from provision.model.facts import SpackFacts
from provision.model.layout import EnvironmentId, Layout


@pytest.fixture
def store(store: Store) -> Store:
    """A root with a Spack that works."""
    checkout, python = store.root / "spack" / "checkout", store.root / "spack" / "python"
    (checkout / "bin").mkdir(parents=True)
    (checkout / "bin" / "spack").touch()
    (python / "bin").mkdir(parents=True)
    (python / "bin" / "python").touch()
    (python / "lib" / "python3.11" / "site-packages" / "clingo").mkdir(parents=True)
    setup = SpackSetup(
        root=str(checkout),
        version="1.0.2",
        commit="9cf6633",
        python=str(python / "bin" / "python"),
        source="/a b/spack",
    )
    write_setup(store, setup)
    return store


def look(store: Store) -> tuple[SpackFacts | None, list[tuple[str, str]]]:
    """The facts, and each problem with its hint."""
    site = profile("local")
    probes = Probes(site, site.archs[0])
    found = probes.ask("spack", "", lambda: find_spack(site, store, {}))
    return found, [(fault.message, fault.hint or "") for fault in probes.faults]


def test_a_spack_that_works_has_no_problem(store: Store) -> None:
    facts, faults = look(store)
    assert facts is not None and facts.commit == "9cf6633" and not facts.closed
    assert faults == []


def test_how_long_it_takes_comes_from_the_last_build_by_spack(store: Store) -> None:
    """Not from a virtual environment of the same stack."""
    assert seconds_before(store, load_stack("tensorflow-2.15.1"), "knl") == 0
    env = EnvironmentId("knl", "tensorflow", "2.15.1", "0123456789")
    timed = {"concretize": 4.0, "install": 100.0, "view": 1.5, "proof": 20.0}
    for identity, expected in (({"spack": "1.0.2 9cf6633"}, 105.5), ({"python": "3.11.7"}, 0)):
        records = Path(store.layout.records_folder(env))
        records.mkdir(parents=True, exist_ok=True)
        made = make_record(environment=str(env), identity=identity, seconds=timed)
        (records / "record.json").write_text(json.dumps(made.to_dict()))
        assert seconds_before(store, load_stack("tensorflow-2.15.1"), "knl") == expected


def test_a_site_without_spack_is_told_how_to_set_it_up(tmp_path: Path) -> None:
    facts, ((message, hint),) = look(Store(Layout(PurePosixPath(tmp_path))))
    assert facts is None
    assert "has no Spack" in message
    assert "provision spack setup" in hint


def test_a_python_without_clingo_is_found_before_spack_asks_the_network_for_it(store: Store) -> None:
    """Trap: Spack tries to bootstrap it, which ends in FetchIndexError."""
    next(Path(store.root).glob("spack/python/lib/*/*/clingo")).rmdir()
    facts, ((message, hint),) = look(store)
    assert facts is None
    assert "has no clingo" in message
    assert "`provision spack setup '/a b/spack' --commit 9cf6633 --site local`" in hint


def test_a_build_cache_that_is_gone_is_named(store: Store, tmp_path: Path) -> None:
    setup = read_setup(store)
    assert setup is not None
    write_setup(store, dataclasses.replace(setup, cache=f"file://{tmp_path}/gone"))
    facts, ((message, _),) = look(store)
    assert facts is None
    assert f"`file://{tmp_path}/gone`" in message
    write_setup(store, dataclasses.replace(setup, cache=f"file://{tmp_path}"))
    assert look(store)[1] == []
