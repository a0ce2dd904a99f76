"""Environments of one root share their equal files, and nothing that happens to one of them changes another."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from parts.published import SITE, put_unproved
from provision.machine.root.checking import examine
from provision.machine.root.removing import Remover
from provision.machine.root.sealing import seal
from provision.machine.root.store import Store
from provision.model.layout import EnvironmentId

FIRST = EnvironmentId("knl", "tensorflow", "2.15.1", "0123456789")
SECOND = EnvironmentId("haswell", "tensorflow", "2.15.1", "abcdefabcd")
LIBRARY, SOURCE, BYTECODE = f"{SITE}/libequal.so", f"{SITE}/equal.py", f"{SITE}/__pycache__/equal.cpython-311.pyc"
BY_HASH, BY_TIME = b"\xa7\r\r\n\x01\0\0\0 of the hash", b"\xa7\r\r\n\0\0\0\0 of the time"


def put(store: Store, env: EnvironmentId, bytecode: bytes = BY_HASH, time_s: int = 1_000_000_000) -> Path:
    """An environment before its seal, with files that others have too; returns its prefix."""
    prefix = put_unproved(store, env)
    (prefix / BYTECODE).parent.mkdir()
    for name, content in ((LIBRARY, b"a library\n"), (SOURCE, b"pass\n"), (BYTECODE, bytecode)):
        (prefix / name).write_bytes(content)
    (prefix / LIBRARY).chmod(0o755)
    os.utime(prefix / SOURCE, (time_s, time_s))
    return prefix


def shared(one: Path, two: Path) -> set[str]:
    """Which of the equal files are one file."""
    return {name for name in (LIBRARY, SOURCE, BYTECODE) if (one / name).samefile(two / name)}


def state(prefix: Path) -> dict[str, tuple[int, int, bytes]]:
    """Mode, time and content of every file."""
    files = (path for path in prefix.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path): (path.stat().st_mode, path.stat().st_mtime_ns, path.read_bytes()) for path in files}


def test_equal_files_of_two_environments_are_one_and_both_are_whole(store: Store) -> None:
    one, two = put(store, FIRST), put(store, SECOND, time_s=1_100_000_000)
    said: list[str] = []
    seal(store, FIRST, say=said.append)
    before = state(one)
    assert said == []
    seal(store, SECOND, say=said.append)
    assert shared(one, two) == {LIBRARY, SOURCE, BYTECODE}
    assert "linked" in said[0]
    assert state(one) == before
    assert (two / LIBRARY).stat().st_nlink == 2
    assert not (one / f"{SITE}/six.py").samefile(two / f"{SITE}/six.py")
    for env in (FIRST, SECOND):
        assert examine(store, env, hashes=True).differences == ()


def test_the_removal_of_an_environment_changes_nothing_of_another(store: Store) -> None:
    one, two = put(store, FIRST), put(store, SECOND)
    seal(store, FIRST)
    seal(store, SECOND)
    before = state(two)
    assert Remover(store).remove(FIRST) is None
    assert not one.exists()
    assert state(two) == before
    assert examine(store, SECOND, hashes=True).differences == ()
    put(store, FIRST)
    seal(store, FIRST)
    assert shared(two, one) == {LIBRARY, SOURCE, BYTECODE}


def test_a_source_whose_time_is_in_its_bytecode_keeps_its_time(store: Store) -> None:
    one, two = put(store, FIRST, BY_TIME), put(store, SECOND, BY_TIME, time_s=1_100_000_000)
    seal(store, FIRST)
    seal(store, SECOND)
    assert shared(one, two) == {LIBRARY, BYTECODE}
    assert (two / SOURCE).stat().st_mtime == 1_100_000_000
    third = EnvironmentId("knl", "tensorflow", "2.15.1", "1111111111")
    same_time = put(store, third, BY_TIME)
    seal(store, third)
    assert SOURCE in shared(one, same_time)


def damage(path: Path) -> None:
    """Other bytes of the same number, at the same time."""
    path.chmod(0o755)
    times = path.stat()
    path.write_bytes(b"a LIBRARY\n")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    path.chmod(0o555)


@pytest.mark.parametrize(
    "make_different",
    [
        damage,
        lambda path: path.chmod(0o755),
        lambda path: path.unlink(),
        lambda path: os.chown(path, 54321, -1),
        lambda path: os.chown(path, -1, 54321),
    ],
    ids=["damaged", "writable", "gone", "of another owner", "of another group"],
)
def test_a_file_that_is_not_as_it_was_sealed_is_not_linked(
    store: Store, make_different: Callable[[Path], object]
) -> None:
    one, two = put(store, FIRST), put(store, SECOND)
    seal(store, FIRST)
    (one / LIBRARY).parent.chmod(0o755)
    try:
        make_different(one / LIBRARY)
    except PermissionError:
        pytest.skip("needs root")
    seal(store, SECOND)
    assert (two / LIBRARY).stat().st_nlink == 1
    assert (two / LIBRARY).read_bytes() == b"a library\n"
    assert (one / SOURCE).samefile(two / SOURCE)
    assert examine(store, SECOND, hashes=True).differences == ()


def test_an_environment_that_is_not_sealed_shares_nothing(store: Store) -> None:
    one, two = put(store, FIRST), put(store, SECOND)
    seal(store, SECOND)
    assert shared(one, two) == set()


@pytest.mark.parametrize("after", [0, 1])
def test_where_links_are_refused_the_copies_stay(store: Store, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    one, two = put(store, FIRST), put(store, SECOND)
    seal(store, FIRST)
    link, calls = os.link, iter(range(100))

    def refuse(*arguments: object, **options: bool) -> None:
        if next(calls) >= after:
            raise OSError(errno.EXDEV, "links between folders are not supported")
        link(*arguments, **options)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", refuse)
        seal(store, SECOND)
    assert len(shared(one, two)) <= after
    assert not list((two / ".provision").glob("linked*"))
    assert examine(store, SECOND, hashes=True).differences == ()


def test_a_run_that_was_killed_while_it_linked_is_finished_by_the_next(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = put(store, FIRST), put(store, SECOND)
    seal(store, FIRST)
    replace, calls = Path.replace, iter(range(100))

    def die(path: Path, target: Path) -> Path:
        if next(calls) >= 1:
            raise KeyboardInterrupt
        return replace(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", die)
        with pytest.raises(KeyboardInterrupt):
            seal(store, SECOND)
    assert (two / ".provision/linked").exists()
    assert store.record(SECOND) is None
    seal(store, SECOND)
    assert shared(one, two) == {LIBRARY, SOURCE, BYTECODE}
    assert not (two / ".provision/linked").exists()
    assert examine(store, SECOND, hashes=True).differences == ()
