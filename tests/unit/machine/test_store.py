"""The root on disk: publishing with one rename, the wheel cache, and removing."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from pathlib import Path, PurePosixPath

import pytest

from golden_files import Words
from parts.disks import files_below, fill
from parts.records import make_record, publish
from provision.errors import StoreError
from provision.machine.files.disk import read_json, sha256_of, write
from provision.machine.root.event_file import shown_to_waiting
from provision.machine.root.observe import existing
from provision.machine.root.removing import Remover
from provision.machine.root.store import Store
from provision.model.event import Event
from provision.model.layout import EnvironmentId, Layout
from provision.model.record import Receipt

ENV = EnvironmentId("knl", "tensorflow", "2.15.1", "0123456789")
OTHER = EnvironmentId("knl", "tensorflow", "2.14.0", "abcdefabcd")


def store_at(root: Path) -> Store:
    """The store below this root."""
    return Store(Layout(PurePosixPath(root)))


# Receipts, environments and the root


def test_the_next_run_sees_receipts(store: Store) -> None:
    store.write_receipt(ENV, Receipt(step="create", seconds=1, host="n"))
    store.write_receipt(ENV, Receipt(step="install", seconds=1, host="n"))
    store.write_receipt(OTHER, Receipt(step="create", seconds=1, host="n"))
    assert existing(store).receipts == {str(ENV): frozenset({"create", "install"}), str(OTHER): frozenset({"create"})}


def test_an_environment_name_is_parsed_as_it_was_written() -> None:
    assert EnvironmentId.parse(str(ENV)) == ENV
    dashed = EnvironmentId("knl", "tensorflow", "2.15.1-rc1", "0123456789")
    assert EnvironmentId.parse(str(dashed)) == dashed
    for text in ("", "a/b", "a/b/c", "a/b/c-d/e"):
        with pytest.raises(ValueError):
            EnvironmentId.parse(text)


def test_a_missing_root_is_judged_by_its_nearest_existing_folder(store: Store) -> None:
    place = store_at(store.root / "a" / "b").place()
    assert place.writable
    assert place.free_bytes > 0
    assert place.path == f"{store.root}/a/b"
    store.root.write_text("")
    assert not store_at(store.root / "a").place().writable, "it is below a file"


def test_everybody_may_read_an_environment_and_its_size_is_known(store: Store) -> None:
    folder = store.root / "envs"
    write(folder / "program", "x" * 1000, executable=True)
    write(folder / "data", "x" * 500)
    for name, mode in (("program", 0o700), ("data", 0o600)):
        (folder / name).chmod(mode)
    before = store.make_readable(str(folder))
    assert [(folder / name).stat().st_mode & 0o777 for name in ("program", "data")] == [0o755, 0o644]
    write(folder / "data", "x" * 1000)  # not one file more: on some file systems a folder grows with its files
    assert store.make_readable(str(folder)) - before == 500


# Removing


@pytest.mark.parametrize(
    "path", ["/etc", "/", "{root}", "{root}/", "{root}-beside", "{root}/../root-beside", "{root}/.", "relative"]
)
def test_a_path_outside_the_root_is_not_removed(store: Store, path: str) -> None:
    store.root.mkdir()
    beside = store.root.with_name("root-beside")
    beside.mkdir()
    with pytest.raises(StoreError, match="must not be removed"):
        store.remove(path.format(root=store.root))
    assert store.root.is_dir()
    assert beside.is_dir()


# Publishing


def test_publishing_again_keeps_earlier_modules_and_generations(store: Store) -> None:
    publish(store, ENV, {"lua/tensorflow/2.15.1.lua": "first"})
    publish(store, OTHER, {"lua/tensorflow/2.14.0.lua": "other"})
    newer = EnvironmentId("knl", "tensorflow", "2.15.1", "ffffffffff")
    publish(store, newer, {"lua/tensorflow/2.15.1.lua": "second"})
    pointer, generations = store.root / "modules" / "knl", store.root / "modules" / ".generations" / "knl"
    assert sorted(path.name for path in generations.iterdir()) == ["000001", "000002", "000003"]
    assert str(pointer.readlink()) == ".generations/knl/000003"
    assert files_below(generations / "000001") == [
        "environments/tensorflow/2.15.1",
        "generation.json",
        "lua/tensorflow/2.15.1.lua",
    ]
    assert (generations / "000002/lua/tensorflow/2.15.1.lua").read_text() == "first"
    assert (pointer / "lua/tensorflow/2.15.1.lua").read_text() == "second"
    assert (pointer / "lua/tensorflow/2.14.0.lua").read_text() == "other"
    assert store.pointers() == {"knl/tensorflow/2.15.1": str(newer), "knl/tensorflow/2.14.0": str(OTHER)}


def test_publishers_at_once_all_publish(store: Store) -> None:
    envs = [EnvironmentId("knl", "tensorflow", f"2.{minor}", "0123456789") for minor in range(4)]
    program = (
        "import sys; from pathlib import PurePosixPath as P\n"
        "from provision.machine.root.store import Store; from provision.model.layout import EnvironmentId, Layout\n"
        "env = EnvironmentId.parse(sys.argv[2])\n"
        "from parts.records import publish\n"
        "publish(Store(Layout(P(sys.argv[1]))), env, {f'lua/tensorflow/{env.version}.lua': str(env)})\n"
    )
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    running = [
        subprocess.Popen([sys.executable, "-c", program, str(store.root), str(env)], env=environ) for env in envs
    ]
    assert [process.wait() for process in running] == [0] * len(envs)
    assert store.pointers() == {f"knl/tensorflow/{env.version}": str(env) for env in envs}
    for env in envs:
        assert (store.root / f"modules/knl/lua/tensorflow/{env.version}.lua").read_text() == str(env)


def test_users_see_every_module_during_publishing(store: Store) -> None:
    publish(store, ENV, {"lua/t/0.lua": "x"})
    missing, stop = [], threading.Event()

    def look() -> None:
        while not stop.is_set():
            if not (store.root / "modules/knl/lua/t/0.lua").is_file():
                missing.append(1)

    looking = threading.Thread(target=look)
    looking.start()
    for number in range(1, 6):
        publish(store, EnvironmentId("knl", "t", str(number), "0123456789"), {f"lua/t/{number}.lua": "x"})
    stop.set()
    looking.join()
    assert not missing


# Wheels and sources


def kept_wheel(store: Store, tmp_path: Path) -> Path:
    """A wheel in the cache, under the key `k`."""
    folder = tmp_path / "built"
    folder.mkdir(exist_ok=True)
    (folder / "horovod-0.28.1-cp311.whl").write_bytes(b"wheel")
    store.wheels.keep(str(folder), "k", {"mpi": "mpich"})
    return store.wheels.find("k")


def test_a_wheel_is_kept_with_the_values_of_its_abi(store: Store, tmp_path: Path) -> None:
    path = kept_wheel(store, tmp_path)
    assert path.read_bytes() == b"wheel"
    description = read_json(path.parent / "wheel.json")
    assert description is not None
    assert description["abi"] == {"mpi": "mpich"}
    assert description["sha256"] == hashlib.sha256(b"wheel").hexdigest() == sha256_of(path)
    assert existing(store).wheels == {"k"}


def test_a_second_wheel_with_the_same_key_changes_nothing(store: Store, tmp_path: Path) -> None:
    path = kept_wheel(store, tmp_path)
    (tmp_path / "built" / path.name).write_bytes(b"another")
    store.wheels.keep(str(tmp_path / "built"), "k", {})
    assert store.wheels.find("k").read_bytes() == b"wheel"


@pytest.mark.parametrize("count", [0, 2])
def test_a_build_must_make_exactly_one_wheel(store: Store, tmp_path: Path, count: int, words: Words) -> None:
    for number in range(count):
        (tmp_path / f"{number}.whl").write_bytes(b"")
    with pytest.raises(StoreError, match=f"{count} wheels") as caught:
        store.wheels.keep(str(tmp_path), "k", {})
    words("build", caught.value.message)


def test_a_source_package_is_kept_only_if_its_hash_is_locked(store: Store, tmp_path: Path, words: Words) -> None:
    (tmp_path / "download").mkdir()
    (tmp_path / "download" / "horovod.tar.gz").write_bytes(b"source")
    right, path = f"sha256:{hashlib.sha256(b'source').hexdigest()}", str(store.root / "cache" / "horovod.tar.gz")
    with pytest.raises(StoreError) as caught:
        store.downloads.keep_source(str(tmp_path / "download"), path, ("sha256:0",))
    words("build", caught.value.message)
    assert f"horovod.tar.gz {right}" in caught.value.evidence
    assert not store.downloads.has_source(path, (right,))
    store.downloads.keep_source(str(tmp_path / "download"), path, ("sha256:0", right))
    assert store.downloads.has_source(path, (right,))
    Path(path).write_bytes(b"changed")
    assert not store.downloads.has_source(path, (right,))


# A full disk, and a read-only one


def test_a_full_disk_is_an_error(small_disk: Path, tmp_path: Path) -> None:
    store = store_at(small_disk)
    publish(store, ENV, {"lua/t/1.lua": "x" * 20_000})
    (tmp_path / "built").mkdir()
    (tmp_path / "built" / "a.whl").write_bytes(b"x" * 8192)
    hashes = (f"sha256:{sha256_of(tmp_path / 'built' / 'a.whl')}",)
    fill(small_disk)
    for act in (
        lambda: store.write_receipt(ENV, Receipt(step="create", seconds=1, host="n")),
        lambda: store.wheels.keep(str(tmp_path / "built"), "k", {}),
        lambda: store.downloads.keep_source(str(tmp_path / "built"), str(small_disk / "a.whl"), hashes),
        lambda: publish(store, OTHER, {"lua/t/2.lua": "x"}),
        store.held(small_disk / "a.lock", {}).__enter__,
    ):
        with pytest.raises(StoreError, match="the disk is full"):
            act()
    assert existing(store).wheels == frozenset()
    assert store.receipts(ENV) == frozenset()


def test_a_read_only_root_is_an_error(small_disk: Path, words: Words) -> None:
    store = store_at(small_disk / "root")
    store.write_receipt(ENV, Receipt(step="create", seconds=1, host="n"))
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    assert not store.place().writable
    assert store.receipts(ENV) == {"create"}
    for act in (
        lambda: store.write_receipt(ENV, Receipt(step="install", seconds=1, host="n")),
        lambda: publish(store, ENV, {}),
        lambda: store.remove(str(store.layout.prefix(ENV))),
        store.make_jobs,
    ):
        with pytest.raises(StoreError, match="Read-only file system") as caught:
            act()
        assert "PROVISION_ROOT" in str(caught.value.hint)
        words("build", caught.value.message.rpartition("` ")[2])


# What is wrong


def test_a_disk_that_stays_full_is_called_full_to_the_end_and_leaves_no_lock(small_disk: Path) -> None:
    """The files of locks and events are written all the time, and when they are closed."""
    store = store_at(small_disk)
    path = Path(store.layout.lock(ENV))
    with (
        pytest.raises(StoreError, match="the disk is full"),
        store.held(path, {}) as lock,
        shown_to_waiting(store, ENV, lock) as listen,
    ):
        fill(small_disk)
        for _ in range(3):
            listen(Event(kind="say", text="x" * 3000))
        store.write_receipt(ENV, Receipt(step="create", seconds=1, host="n"))
    assert not list(path.parent.iterdir())


def test_a_folder_that_is_being_removed_is_not_an_environment(store: Store) -> None:
    store.write_receipt(ENV, Receipt(step="create", seconds=1, host="n"))
    prefix = Path(store.layout.prefix(ENV))
    prefix.rename(prefix.with_name(f".{prefix.name}.removed.1.abcdef"))  # where `remove` was killed
    assert store.environments() == []


def test_a_root_below_a_private_folder_of_another_user_is_an_error(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("becoming another user needs root")
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    (tmp_path / "private" / "x").mkdir(parents=True)
    (tmp_path / "private").chmod(0o700)
    program = (
        "import os, sys; from pathlib import PurePosixPath as P; from provision.machine.root.store import Store\n"
        "from provision.model.layout import Layout\nos.setgid(65534); os.setuid(65534)\n"
        "print(Store(Layout(P(sys.argv[1]))).place().writable)\n"
    )
    argv = [sys.executable, "-c", program, str(tmp_path / "private" / "x" / "root")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.stdout == "False\n", done.stderr


def test_a_damaged_record_is_an_error_with_the_path_and_the_value(store: Store, words: Words) -> None:
    path = Path(store.layout.records_folder(ENV)) / "record.json"
    write(path, json.dumps({**make_record().to_dict(), "prefix": 3}))
    with pytest.raises(StoreError, match="is damaged") as caught:
        store.record(ENV)
    assert caught.value.kind == "damaged-record"
    assert str(path) in caught.value.message
    (fault,) = caught.value.evidence
    assert "`prefix`" in fault and "3" in fault
    words("show", fault)
    assert store.records() == []


def test_sweep_removes_what_killed_runs_left_of_the_same_environment_only(store: Store) -> None:
    prefix, other = Path(store.layout.prefix(ENV)), Path(store.layout.prefix(OTHER))
    build, records = Path(store.layout.build(ENV)), Path(store.layout.records_folder(ENV))
    left = [
        prefix.with_name(f".{prefix.name}.removed.1.abcdef"),
        build.with_name(f".{build.name}.removed.12.abcdef"),
        records / ".candidate.removed.3.abcdef",
    ]
    stays = [other.with_name(f".{other.name}.removed.1.abcdef"), records / "receipts", prefix / "lib" / ".x.1.abcdef"]
    for folder in (*left, *stays):
        folder.mkdir(parents=True)
        (folder / "x").touch()
    (records / "receipts" / ".create.json.77.abcdef").write_text("half")
    store.sweep(ENV)
    assert [path for path in left if path.exists()] == []
    assert all(path.is_dir() for path in stays)
    assert [path.name for path in (records / "receipts").iterdir()] == ["x"]


def test_publishing_removes_what_a_killed_publication_left(store: Store) -> None:
    publish(store, ENV, {"lua/t/1.lua": "x"})
    pointer, generations = store.root / "modules" / "knl", store.root / "modules" / ".generations" / "knl"
    (generations / ".next.abc").mkdir()
    (pointer.parent / ".knl.17.abcdef").symlink_to("nothing")
    (pointer.parent / ".knl2.17.abcdef").symlink_to("nothing")
    publish(store, OTHER, {"lua/t/2.lua": "x"})
    assert sorted(path.name for path in generations.iterdir()) == ["000001", "000002"]
    assert sorted(path.name for path in pointer.parent.iterdir()) == [".generations", ".knl2.17.abcdef", "knl"]


@pytest.mark.parametrize("repair", ["rollback", "publish", "prune"])
def test_the_link_that_a_killed_rollback_left_is_no_pointer_and_goes(store: Store, repair: str) -> None:
    publish(store, ENV, {"lua/t/1.lua": "x"})
    publish(store, ENV, {"lua/t/1.lua": "y"})
    left = store.root / "modules" / ".knl.17.abcdef"
    left.symlink_to(".generations/knl/000001")
    assert store.pointers() == {ENV.pointer: str(ENV)}
    assert existing(store).pointers == store.pointers()
    match repair:
        case "rollback":
            store.generations.roll_back("knl", lambda current, generations: 1)
        case "publish":
            publish(store, ENV, {"lua/t/1.lua": "z"})
        case "prune":
            remover = Remover(store)
            remover.carry_out([], remover.leftovers([], [], 10))
    assert not os.path.lexists(left)
    assert store.pointers() == {ENV.pointer: str(ENV)}


def test_the_folder_of_a_proof_is_new_and_below_the_folder_of_tests(store: Store) -> None:
    tests = Path(store.layout.records_folder(ENV) / "tests")
    folder = store.make_test_folder(tests)
    assert folder.is_dir()
    assert folder.parent == tests
    assert folder.name.endswith(f"-{os.getpid()}")
