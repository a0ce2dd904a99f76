"""Publishing, taking back and rolling back on the disk, and what the real Lmod and Environment Modules make of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from golden_files import Words
from parts.modules import ENVIRONMENT_MODULES, LMOD, ModuleSystem, bash
from parts.published import put_proved
from provision.errors import ConfigError, StoreError
from provision.machine.root.publishing import Publisher
from provision.machine.root.store import Store
from provision.model.generation import Deprecation
from provision.model.layout import EnvironmentId
from provision.planning.publication import Marks

SYSTEMS = [
    pytest.param(
        system, kind, id=f"{name}-{kind}", marks=pytest.mark.skipif(system is None, reason=f"{name} is missing")
    )
    for name, system, kind in (
        ("Lmod", LMOD, "lua"),
        ("Lmod", LMOD, "tcl"),
        ("Environment Modules", ENVIRONMENT_MODULES, "tcl"),
    )
]
every_system = pytest.mark.parametrize(("system", "kind"), SYSTEMS)
OLD = EnvironmentId("knl", "tensorflow", "2.15.1", "0000000000")
NEW = EnvironmentId("knl", "tensorflow", "2.21.0", "1111111111")
NEWER = EnvironmentId("knl", "tensorflow", "2.21.0", "2222222222")


@pytest.fixture
def store(store: Store) -> Store:
    """A root with three environments that passed their proof; none is published."""
    for env in (OLD, NEW, NEWER):
        put_proved(store, env)
    return store


def modules(store: Store) -> dict[str, str]:
    """What users of the arch can load."""
    return dict(store.generations.published("knl").modules)


def run(store: Store, system: ModuleSystem, kind: str, script: str) -> str:
    """What a user sees who types this with the published modules; stdout and stderr together."""
    done = bash(f"exec 2>&1; {script}", system, f"{store.layout.modules('knl')}/{kind}")
    return done.stdout


def each(store: Store, system: ModuleSystem, kind: str, *scripts: str) -> list[str]:
    """What a user sees who types these, each in a shell that has loaded nothing."""
    return run(store, system, kind, "; echo ===; ".join(f"({script})" for script in scripts)).split("===\n")


def test_a_rollback_gives_back_what_was_loaded_before_and_another_one_what_was_before_that(
    store: Store, words: Words
) -> None:
    publisher = Publisher(store)
    for env in (OLD, NEW, NEWER):
        publisher.publish(env)
    assert modules(store) == {"tensorflow/2.15.1": str(OLD), "tensorflow/2.21.0": str(NEWER)}
    assert publisher.roll_back("knl", None).number == 2
    assert modules(store)["tensorflow/2.21.0"] == str(NEW)
    assert publisher.roll_back("knl", None).number == 1
    assert modules(store) == {"tensorflow/2.15.1": str(OLD)}
    with pytest.raises(ConfigError) as caught:
        publisher.roll_back("knl", None)
    assert caught.value.kind == "no-generation"
    words("rollback", f"{caught.value.message}\nhint: {caught.value.hint}")
    assert modules(store) == {"tensorflow/2.15.1": str(OLD)}
    publisher.roll_back("knl", 3)
    assert modules(store)["tensorflow/2.21.0"] == str(NEWER)


def test_after_a_rollback_and_a_publication_a_rollback_goes_to_what_users_had(store: Store) -> None:
    publisher = Publisher(store)
    for env in (OLD, NEW):
        publisher.publish(env)
    publisher.roll_back("knl", None)
    assert publisher.publish(NEWER).number == 3
    assert publisher.roll_back("knl", None).number == 1, "not 2, which users did not load when 3 came"


def test_a_rollback_to_an_environment_that_is_gone_is_refused_and_names_a_good_generation(
    store: Store, words: Words
) -> None:
    publisher = Publisher(store)
    for env in (OLD, NEW, NEWER):
        publisher.publish(env)
    store.remove(str(store.layout.prefix(NEW)))
    with pytest.raises(ConfigError) as caught:
        publisher.roll_back("knl", None)
    assert str(NEW) in caught.value.evidence[0]
    assert "`provision rollback --arch knl --generation 1`" in str(caught.value.hint)
    words("rollback", "\n".join(caught.value.to_lines()))
    assert modules(store)["tensorflow/2.21.0"] == str(NEWER)


def test_what_is_unpublished_is_gone_for_users_but_stays_on_the_disk(store: Store) -> None:
    publisher = Publisher(store)
    publisher.publish(OLD)
    publisher.publish(NEW, Marks(default=True))
    publisher.unpublish(NEW)
    assert modules(store) == {"tensorflow/2.15.1": str(OLD)}
    left = [path.name for path in Path(store.layout.modules("knl")).rglob("*2.21.0*")]
    assert left == []
    assert store.record(NEW) is not None
    with pytest.raises(ConfigError, match="is not published"):
        publisher.unpublish(NEW)
    publisher.publish(NEW)
    assert modules(store)["tensorflow/2.21.0"] == str(NEW)


def test_a_modulefile_that_was_edited_stays_marked_when_another_one_is_published(store: Store, words: Words) -> None:
    publisher = Publisher(store)
    publisher.publish(OLD)
    path = Path(store.layout.modules("knl")) / "lua/tensorflow/2.15.1.lua"
    path.write_text("-- edited\n")
    damaged = store.generations.damaged("knl")
    assert list(damaged) == [path]
    words("list", damaged[path])
    publisher.publish(NEW)
    assert list(store.generations.damaged("knl")) == [path]
    publisher.publish(OLD)
    assert store.generations.damaged("knl") == {}


def test_a_generation_that_vanished_is_noticed_and_the_next_publication_starts_from_the_newest_left(
    store: Store, words: Words
) -> None:
    publisher = Publisher(store)
    for env in (OLD, NEW):
        publisher.publish(env)
    shutil.rmtree(store.generations.folder("knl", 2))
    (reason,) = store.generations.damaged("knl").values()
    assert "generation 2" in reason
    words("list", reason)
    publisher.publish(NEWER)
    assert modules(store) == {"tensorflow/2.15.1": str(OLD), "tensorflow/2.21.0": str(NEWER)}


def test_a_generation_of_a_newer_version_is_not_changed(store: Store, words: Words) -> None:
    publisher = Publisher(store)
    publisher.publish(OLD)
    about = Path(store.layout.modules("knl")) / "generation.json"
    about.write_text(about.read_text().replace('"schema": 1', '"schema": 2'))
    with pytest.raises(StoreError) as caught:
        publisher.publish(NEW)
    assert "`schema` is 2" in caught.value.evidence[0]
    words("publish", "\n".join(caught.value.to_lines()))
    assert store.pointers() == {"knl/tensorflow/2.15.1": str(OLD)}


@every_system
def test_the_module_systems_know_default_hidden_and_deprecated(store: Store, system: ModuleSystem, kind: str) -> None:
    newest = EnvironmentId("knl", "tensorflow", "2.22.0", "4444444444")
    put_proved(store, newest)
    publisher = Publisher(store)
    publisher.publish(OLD, Marks(deprecation=Deprecation(date="2027-03-01", text='load 2.21.0 [see "docs"]')))
    publisher.publish(NEW, Marks(default=True))
    publisher.publish(newest, Marks(hidden=True))
    load = "module load {}; echo rc $? $PROVISION_ENVIRONMENT".format
    names = ("tensorflow", "tensorflow/2.22.0", "tensorflow/2.15.1")
    listed, default, hidden, old = each(store, system, kind, "module -t avail", *map(load, names))
    assert "tensorflow/2.21.0" in listed
    assert "tensorflow/2.15.1" in listed
    assert "tensorflow/2.22.0" not in listed
    assert (default.strip(), hidden.strip()) == (f"rc 0 {NEW}", f"rc 0 {newest}")
    words = " ".join(old.split())
    for part in ("tensorflow/2.15.1", "2027-03-01", 'load 2.21.0 [see "docs"]'):
        assert part in words
    assert f"rc 0 {OLD}" in words
    publisher.publish(OLD, Marks(no_deprecation=True))
    publisher.publish(newest, Marks(hidden=False, default=True))
    listed, default, old = each(store, system, kind, "module -t avail", load(names[0]), load(names[2]))
    assert "tensorflow/2.22.0" in listed
    assert default.strip() == f"rc 0 {newest}"
    assert "deprecated" not in old


@every_system
def test_the_log_level_of_the_user_wins_and_stays_after_unloading(
    store: Store, system: ModuleSystem, kind: str
) -> None:
    for env in (OLD, NEW):
        Publisher(store).publish(env)
    say = 'echo "$PROVISION_ENVIRONMENT ${TF_CPP_MIN_LOG_LEVEL-none} ${PROVISION_SETS_TF_CPP_MIN_LOG_LEVEL-none}"'
    script = (
        f"module load tensorflow/2.15.1; {say}; module switch tensorflow tensorflow/2.21.0; {say}; module unload tensorflow; "
        f"{say}; export TF_CPP_MIN_LOG_LEVEL=0; module load tensorflow/2.21.0; {say}; module unload tensorflow; {say}"
    )
    lines = [line for line in run(store, system, kind, script).splitlines() if line.endswith((" 1", "none"))]
    assert lines == [f"{OLD} 1 1", f"{NEW} 1 1", " none none", f"{NEW} 0 none", " 0 none"]


@pytest.mark.skipif(LMOD is None, reason="Lmod is missing")
def test_lmod_finds_the_module_by_the_packages_in_it(store: Store) -> None:
    assert LMOD is not None
    Publisher(store).publish(NEW)
    assert "keras/2.15.0 (E)" in run(store, LMOD, "lua", "module spider keras")
    assert "tensorflow/2.21.0" in run(store, LMOD, "lua", "module spider keras/2.15.0")


@every_system
def test_a_module_whose_prefix_is_gone_is_refused_with_one_sentence(
    store: Store, system: ModuleSystem, kind: str
) -> None:
    Publisher(store).publish(NEW)
    good = run(store, system, kind, "module load tensorflow/2.21.0 && echo rc $? $(type -p python)")
    assert good.strip() == f"rc 0 {store.layout.prefix(NEW)}/bin/python"
    store.remove(str(store.layout.prefix(NEW)))
    bad = run(
        store, system, kind, "module load tensorflow/2.21.0; echo rc $? $(type -p python) $PROVISION_ENVIRONMENT."
    )
    words = " ".join(bad.split())
    assert "tensorflow/2.21.0 " in words and f"{store.layout.prefix(NEW)} " in words
    assert "rc 1" in words
    assert words.endswith(".")
    assert str(NEW) not in words.rpartition("rc")[2]
    assert "bin/python" not in words.rpartition("rc")[2] or str(store.root) not in words.rpartition("rc")[2]
