"""A killed compilation goes on with its objects, unless they are of another wheel, another user, or a machine that crashed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest

from provision.machine.install import unfinished_compile
from provision.machine.install.source_tree import replace_changed
from provision.machine.install.unfinished_compile import STAMP, resume, settle
from provision.machine.root.store import Store
from provision.model.layout import Layout

OLD_S = 1_000_000_000


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """The store below a root."""
    return Store(Layout(PurePosixPath(tmp_path / "root")))


@pytest.fixture
def folder(store: Store) -> Path:
    """A folder in which a wheel was compiled half-way."""
    folder = store.root / "build" / "knl" / "x"
    assert not resume(store, folder, "key")
    (folder / "a.o").write_text("object")
    return folder


def crash(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine was started again, or it is another one."""
    monkeypatch.setattr(unfinished_compile, "boot_id", lambda: "another start")


def test_objects_of_a_killed_compilation_are_used_again(store: Store, folder: Path) -> None:
    assert resume(store, folder, "key")
    assert (folder / "a.o").read_text() == "object"


def test_objects_that_were_synced_are_used_on_another_machine_too(
    store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(folder)
    crash(monkeypatch)
    assert resume(store, folder, "key")
    # From here on, this machine writes into the folder, so a crash of it counts again.
    monkeypatch.setattr(unfinished_compile, "boot_id", lambda: "a third start")
    assert not resume(store, folder, "key")


def other_user(folder: Path) -> None:
    """Give the folder to another user."""
    if os.geteuid() != 0:
        pytest.skip("giving files to another user needs root")
    os.chown(folder, 54322, -1)


SPOILED: dict[str, Callable[[Path], object]] = {
    "another wheel": lambda folder: (folder / STAMP).write_text(json.dumps({"key": "other", "objects on disk": True})),
    "no stamp": lambda folder: (folder / STAMP).unlink(),
    "a cut stamp": lambda folder: (folder / STAMP).write_text('{"key": "key"'),
    "writable by others": lambda folder: folder.chmod(0o777),
    "of another user": other_user,
}


@pytest.mark.parametrize("why", SPOILED)
def test_objects_that_cannot_be_believed_are_removed(store: Store, folder: Path, why: str) -> None:
    SPOILED[why](folder)
    assert not resume(store, folder, "key")
    assert [path.name for path in folder.iterdir()] == [STAMP]


def test_after_a_crash_of_the_machine_the_compilation_begins_again(
    store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crash(monkeypatch)
    assert not resume(store, folder, "key")
    assert not (folder / "a.o").exists()


def test_unpacking_again_changes_only_the_files_that_differ(tmp_path: Path) -> None:
    fresh, folder = tmp_path / "fresh", tmp_path / "folder"
    for place, texts in (
        (fresh, {"same.cc": "1", "cut.cc": "whole", "sub/new.cc": "3"}),
        (
            folder,
            {"same.cc": "1", "cut.cc": "wh", "build/temp.x/a.o": "o", "build/lib/a.py": "half", "x.egg-info/a": ""},
        ),
    ):
        for name, text in texts.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(text)
            os.utime(place / name, (OLD_S, OLD_S) if place == folder else None)
    (folder / "link").symlink_to("/etc/passwd")
    replace_changed(fresh, folder, "build/temp")
    left = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir() or path.is_symlink())
    assert left == ["build/temp.x/a.o", "cut.cc", "same.cc", "sub/new.cc"]
    assert (folder / "cut.cc").read_text() == "whole"
    kept = [name for name in left if (folder / name).stat().st_mtime == OLD_S]
    assert kept == ["build/temp.x/a.o", "same.cc"]
    assert not fresh.exists()
