"""What of Spack's store belongs to an environment: `verify` reads it, and `prune` removes what no environment uses.

The store is a stand-in: folders, `.spack/spec.json` and the database as Spack 1.2.0.dev0 writes them (`store.py`,
`database.py`). `tests/real/test_spack_store.py` lets a real Spack uninstall.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path, PurePosixPath

import pytest

from golden_files import Words
from parts.cli import call
from parts.published import put_proved, put_unproved
from provision.machine.root.checking import examine, glance
from provision.machine.root.publishing import Publisher
from provision.machine.root.removing import Remover
from provision.machine.root.sealing import seal
from provision.machine.root.spack import SpackSetup, stored_packages, unused_packages, write_setup
from provision.machine.root.store import Store
from provision.model.layout import EnvironmentId, Layout

ENV = EnvironmentId("knl", "tensorflow", "2.15.1", "0000000000")
OTHER = EnvironmentId("knl", "tensorflow", "2.15.1", "1111111111")
USED, UNUSED = "ya3tsqrjfd3izvwe3tvg3p65a7hrzzqs", "e6cjrpeqzy6ahxvpw3thoa6y76t4l6qj"
SITE = "lib/python3.11/site-packages"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A root with two packages in Spack's store, and an environment of links to one of them."""
    monkeypatch.setenv("PROVISION_ROOT", str(tmp_path))
    made = Store(Layout(PurePosixPath(tmp_path)))
    padded = Path(made.layout.spack_store) / "__spack_path_placeholder__" / "__spack_pat"
    installs = {}
    for key, name in ((USED, "py-tensorflow-2.15.1"), (UNUSED, "py-horovod-0.28.1")):
        package = padded / "linux-x86_64" / f"{name}-{key}"
        (package / ".spack").mkdir(parents=True)
        (package / ".spack" / "spec.json").write_text("{}")
        info = package / SITE / "tensorflow-2.15.1.dist-info"
        info.mkdir(parents=True)
        (package / SITE / "tensorflow.py").write_text("value = 1\n")
        (info / "RECORD").write_text(f"tensorflow.py,,\n{info.name}/RECORD,,\n")
        installs[key] = {"spec": {"name": name, "hash": key}, "path": str(package), "installed": True}
    installs["external"] = {"spec": {}, "path": "/usr", "installed": True}
    (padded / ".spack-db").mkdir()
    (padded / ".spack-db" / "index.json").write_text(json.dumps({"database": {"installs": installs}}))
    put_unproved(made, ENV)
    prefix = Path(made.layout.prefix(ENV))
    view = prefix / "._view" / "abc" / SITE
    view.mkdir(parents=True)
    (view / "tensorflow.py").symlink_to(package_of(made, USED) / SITE / "tensorflow.py")
    (prefix / "view").symlink_to("._view/abc")
    (prefix / "spack.yaml").write_text("spack: {}\n")
    (prefix / "spack.lock").write_text(json.dumps({"concrete_specs": {USED: {}, "external": {}}}))
    seal(made, ENV)
    Publisher(made).publish(ENV)
    return made


def package_of(store: Store, key: str) -> Path:
    """The folder of the package with this hash."""
    return next(Path(path) for path, digest in stored_packages(store).items() if digest == key)


def found(store: Store, *, hashes: bool = False) -> list[tuple[str, str, str]]:
    """What `verify` finds."""
    return [(one.name, one.message, one.group) for one in examine(store, ENV, hashes=hashes).differences]


def test_a_changed_file_of_the_store_is_found_with_its_package(store: Store, words: Words) -> None:
    assert found(store, hashes=True) == []
    file = package_of(store, USED) / SITE / "tensorflow.py"
    file.write_text("value = 2222\n")
    assert found(store) == [(str(file), "its size changed", "tensorflow")]
    added = file.with_name("iniconfig.py")
    added.write_text("x")
    (reason,) = [reason for subject, reason, package in found(store) if (subject, package) == (str(added), "")]
    words("verify", reason)


def test_what_no_link_leads_to_and_what_spack_records_are_not_compared(store: Store) -> None:
    (package_of(store, UNUSED) / SITE / "tensorflow.py").write_text("another\n")
    (package_of(store, USED) / ".spack" / "spec.json").write_text("{ }")
    assert found(store, hashes=True) == []


def test_the_hint_removes_the_damaged_package_before_the_rebuild(store: Store) -> None:
    """A rebuild alone would link the damaged package again."""
    for name in ("bin/spack", "bin/python"):
        (store.root / name).parent.mkdir(exist_ok=True)
        (store.root / name).write_text("")
    root = str(store.root)
    setup = SpackSetup(root=root, version="1.2.0", commit="9cf6633", python=f"{root}/bin/python", source="/spack")
    write_setup(store, setup)
    (package_of(store, USED) / SITE / "tensorflow.py").write_text("")
    (difference,) = examine(store, ENV, hashes=False).differences
    hint = str(difference.hint)
    assert hint.startswith("`env -i ") and f"uninstall -y -f /{USED}` " in hint
    assert f"{root}/bin/spack -C {store.layout.records_folder(ENV)}/spack -e {store.layout.prefix(ENV)} " in hint


def test_an_environment_whose_package_is_gone_is_broken_at_a_glance(store: Store) -> None:
    assert glance(store, ENV, loaded=True).why is None
    gone = package_of(store, USED)
    shutil.rmtree(gone)
    assert glance(store, ENV, loaded=True).why == f"{gone}: it is missing"


def test_a_package_that_no_lock_names_is_a_leftover(store: Store) -> None:
    residents = Remover(store).residents()
    assert [(one.kind, one.path) for one in Remover(store).leftovers(residents, [], 10)] == [
        ("package", str(package_of(store, UNUSED)))
    ]
    going = [one.path for one in Remover(store).leftovers(residents, [str(ENV)], 10) if one.kind == "package"]
    assert sorted(going) == sorted(stored_packages(store))


def test_nothing_is_unused_if_a_lock_cannot_be_read(store: Store) -> None:
    put_proved(store, OTHER)  # not of Spack: it uses nothing
    assert len(unused_packages(store, [ENV, OTHER])) == 1
    (Path(store.layout.prefix(ENV)) / "spack.lock").chmod(0o644)
    (Path(store.layout.prefix(ENV)) / "spack.lock").write_text("{")
    assert unused_packages(store, [ENV, OTHER]) == ()
    (Path(store.layout.prefix(ENV)) / "spack.lock").unlink()
    assert unused_packages(store, [ENV, OTHER]) == ()


def test_without_spack_the_packages_stay_with_the_command_that_helps(
    store: Store, capsys: pytest.CaptureFixture[str], words: Words
) -> None:
    assert call("prune", "--yes") == 0
    said = capsys.readouterr()
    kept = package_of(store, UNUSED)
    assert kept.is_dir()
    (line,) = [line for line in (said.out + said.err).splitlines() if f": {kept}: " in line]
    words("prune", line.replace(str(kept), "PACKAGE"))


def test_remove_says_that_the_packages_stay(store: Store, capsys: pytest.CaptureFixture[str], words: Words) -> None:
    assert call("unpublish", str(ENV)) == 0
    assert call("remove", str(ENV)) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "`provision prune`" in line]
    words("remove", line)
