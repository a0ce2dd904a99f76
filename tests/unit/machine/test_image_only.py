"""An environment that is kept as its image only loses its files when it is published, never half, and never without the image."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from parts.published import SITE, put_unproved
from provision.errors import StoreError
from provision.machine.files.disk import sha256_of
from provision.machine.probes.installed_packages import installed_versions
from provision.machine.root import image_only
from provision.machine.root.checking import examine, glance
from provision.machine.root.image_only import is_image_only
from provision.machine.root.publishing import Publisher
from provision.machine.root.removing import Remover
from provision.machine.root.sealing import seal
from provision.machine.root.store import Store
from provision.model.layout import EnvironmentId

ENV = EnvironmentId("knl", "tensorflow", "2.15.1", "0123456789")


def put(store: Store, *, only: bool = True) -> Path:
    """A sealed environment with an image, as far as the tool looks into one; returns its prefix."""
    prefix = put_unproved(store, ENV)
    for package in ("tensorflow", "six"):
        (prefix / SITE / f"{package}-1.0.dist-info/INSTALLER").write_text("uv\n")
    (prefix / "bin/mpicxx").write_text("#!/bin/sh\n")
    (prefix / "bin/mpicxx").chmod(0o755)
    (prefix / "bin/activate").write_text("# sourced\n")
    (prefix / "pyvenv.cfg").write_text("home = /usr/bin\n")
    folder = Path(store.layout.images(ENV))
    folder.mkdir()
    (folder / "environment.squashfs").write_bytes(b"an image\n")
    (folder / "provision-deliver").write_text("#!/bin/sh\n")
    (folder / "provision-deliver").chmod(0o755)
    file = folder / "environment.squashfs"
    image = {"file": str(file), "folder": str(prefix), "sha256": sha256_of(file), "size": 9}
    (folder / "images.json").write_text(json.dumps({"environment": str(ENV), "images": [image], "only": only}))
    seal(store, ENV)
    return prefix


def names(folder: Path) -> list[str]:
    """What is in a folder."""
    return sorted(path.name for path in folder.iterdir())


def is_whole(store: Store) -> bool:
    """Whether nothing is wrong with the environment."""
    return glance(store, ENV, loaded=False).why is None and not examine(store, ENV, hashes=True).differences


def test_the_files_go_when_it_is_published_and_nothing_else_changes(store: Store) -> None:
    prefix = put(store)
    before = installed_versions(prefix)
    assert (is_whole(store), is_image_only(prefix), before != ()) == (True, False, True)
    for _ in range(2):
        Publisher(store).publish(ENV)
        assert names(prefix) == [".provision", "bin"]
        assert {path.name for path in (prefix / "bin").iterdir()} == {"python", "mpicxx"}
        assert all(path.resolve().name == "provision-deliver" for path in (prefix / "bin").iterdir())
        assert (is_whole(store), is_image_only(prefix), installed_versions(prefix)) == (True, True, before)
    Publisher(store).unpublish(ENV)
    (resident,) = Remover(store).residents()
    assert (resident.size, resident.files) == (9, 1)
    assert Remover(store).remove(ENV) is None
    assert not prefix.exists()


def test_an_image_beside_the_files_takes_none_away(store: Store) -> None:
    prefix = put(store, only=False)
    Publisher(store).publish(ENV)
    assert names(prefix) == [".provision", "bin", "lib", "pyvenv.cfg"]


def test_a_damaged_image_keeps_the_files_and_is_not_published(store: Store) -> None:
    prefix = put(store)
    (Path(store.layout.images(ENV)) / "environment.squashfs").write_bytes(b"an Image\n")
    with pytest.raises(StoreError, match="damaged"):
        Publisher(store).publish(ENV)
    assert names(prefix) == [".provision", "bin", "lib", "pyvenv.cfg"]
    assert store.pointers() == {}


@pytest.mark.parametrize("name", ["environment.squashfs", "provision-deliver", "images.json"])
def test_what_is_lost_of_the_image_breaks_it(store: Store, name: str) -> None:
    put(store)
    Publisher(store).publish(ENV)
    (Path(store.layout.images(ENV)) / name).unlink()
    assert glance(store, ENV, loaded=True).why


def test_another_image_with_its_own_hash_is_not_that_of_the_build(store: Store) -> None:
    put(store)
    Publisher(store).publish(ENV)
    folder = Path(store.layout.images(ENV))
    (folder / "environment.squashfs").write_bytes(b"an Image\n")
    described = json.loads((folder / "images.json").read_text())
    described["images"][0]["sha256"] = sha256_of(folder / "environment.squashfs")
    (folder / "images.json").write_text(json.dumps(described))
    assert [one.message for one in examine(store, ENV, hashes=False).differences] == ["damaged"]


@pytest.mark.parametrize(
    ("kind", "where", "after"),
    [(Path, "symlink_to", 0), (Path, "replace", 0), (Path, "symlink_to", 1), (Path, "replace", 1)]
    + [(Store, "remove", after) for after in range(3)],
)
def test_a_kill_leaves_all_files_or_the_image_and_the_next_publication_finishes(
    store: Store, monkeypatch: pytest.MonkeyPatch, kind: type, where: str, after: int
) -> None:
    prefix, calls, real = put(store), iter(range(100)), getattr(kind, where)

    def die(itself: Path, *arguments: object) -> object:
        if next(calls) >= after:
            raise KeyboardInterrupt
        return real(itself, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(kind, where, die)
        with pytest.raises(KeyboardInterrupt):
            image_only.drop_files(store, ENV)
    assert (prefix / "bin/python").exists()
    assert is_whole(store)
    assert store.pointers() == {}
    Publisher(store).publish(ENV)
    assert (names(prefix), is_whole(store)) == ([".provision", "bin"], True)
    assert not list((prefix / ".provision").glob(".*.link"))
