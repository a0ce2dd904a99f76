"""`provision verify`: each kind of damage is found, with its package and file, and `list` and `build` know of it."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from golden_files import Words, lock_of
from parts.cli import call, envelope
from parts.json_page import faults
from parts.published import SITE, put_proved, put_unproved
from parts.records import load, make_record
from provision.commands import verify
from provision.knowledge.advisories import Advisories, Advisory, Span
from provision.machine.files.disk import sha256_of
from provision.machine.root.checking import examine
from provision.machine.root.observe import existing
from provision.machine.root.publishing import Publisher
from provision.machine.root.sealing import seal
from provision.machine.root.store import Store
from provision.model.condition import Trace, judge_traces
from provision.model.layout import EnvironmentId, Layout
from provision.planning.upgrade_changes import newer_advisories, newer_lock

ENV = EnvironmentId("knl", "tensorflow", "2.15.1", "0000000000")
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """The root of site `local`, with one published environment."""
    monkeypatch.setenv("PROVISION_ROOT", str(tmp_path))
    made = Store(Layout(PurePosixPath(tmp_path)))
    put_proved(made, ENV)
    Publisher(made).publish(ENV)
    return made


def prefix_of(store: Store) -> Path:
    """The prefix of the environment."""
    return Path(store.layout.prefix(ENV))


def edit(path: Path, content: bytes, *, keep_time: bool = False) -> None:
    """Replace the content of a file that nobody may write, and give it its mode again."""
    status = path.stat()
    path.chmod(0o644)
    path.write_bytes(content)
    path.chmod(status.st_mode & 0o7777)
    if keep_time:
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def flip(path: Path) -> None:
    """Flip one bit, as a bad disk does: size, time and mode stay."""
    content = bytearray(path.read_bytes())
    content[3] ^= 1
    edit(path, bytes(content), keep_time=True)


def replace_by_folder(path: Path) -> None:
    """Put a folder where a file was."""
    path.unlink()
    path.mkdir()


TENSORFLOW, SIX = f"{SITE}/tensorflow", f"{SITE}/six.py"
DAMAGES: list[Any] = [
    pytest.param(TENSORFLOW, shutil.rmtree, f"{TENSORFLOW}/ops.so", "it is missing", "tensorflow", id="purged folder"),
    pytest.param(SIX, lambda path: path.unlink(), SIX, "it is missing", "six", id="missing file"),
    pytest.param(SIX, lambda path: edit(path, b""), SIX, "it is empty", "six", id="emptied file"),
    pytest.param(SIX, lambda path: edit(path, b"cut"), SIX, "its size changed", "six", id="cut file"),
    pytest.param(
        SIX, lambda path: edit(path, path.read_bytes()[::-1]), SIX, "its content changed", "six", id="edited file"
    ),
    pytest.param(SIX, replace_by_folder, SIX, "a folder is in its place", "six", id="folder instead of file"),
    pytest.param(SIX, lambda path: path.chmod(0o666), SIX, "its mode is 666 instead of 444", "six", id="writable file"),
    pytest.param(
        SITE,
        lambda path: (path / "iniconfig.py").write_text("x"),
        f"{SITE}/iniconfig.py",
        "it was not there when the environment passed its proof",
        None,
        id="pip install",
    ),
    pytest.param(
        "bin/python",
        lambda path: (path.unlink(), path.symlink_to("/bin/true")),
        "bin/python",
        "its size changed",
        None,
        id="another Python",
    ),
]


def seen(store: Store) -> list[tuple[str, str, str | None]]:
    """What verify finds: subject, reason and package."""
    found = examine(store, ENV, hashes=False).to_dict()["differences"]
    return [(one["subject"], one["reason"], one["package"]) for one in found]


def test_what_passed_its_proof_is_fresh(store: Store, capsys: Captured) -> None:
    for words in (("verify", str(ENV)), ("verify", "--all", "--hashes")):
        assert call(*words) == 0
        assert capsys.readouterr().out == f"fresh    {ENV}\n1 fresh\n"


@pytest.mark.parametrize(("where", "damage", "subject", "reason", "package"), DAMAGES)
def test_a_damaged_file_is_found_with_its_package(
    store: Store, where: str, damage: Callable[[Path], object], subject: str, reason: str, package: str | None
) -> None:
    folder = prefix_of(store) / where
    folder.parent.chmod(0o755)
    if folder.is_dir():
        folder.chmod(0o755)
    damage(folder)
    assert (subject, reason, package) in seen(store)


@pytest.mark.parametrize("hashes", [False, True])
@pytest.mark.parametrize("name", [f"{SITE}/mpi_lib.so", "bin/mpicxx", "lib/linked"])
def test_a_link_that_leaves_the_environment_breaks_it_although_its_proof_passed(
    store: Store, tmp_path: Path, name: str, hashes: bool
) -> None:
    """As an installer makes it that links to the cache of its user, which is cleaned one day."""
    other, cache = dataclasses.replace(ENV, fingerprint="0000000001"), tmp_path / "home/.cache/uv"
    cache.mkdir(parents=True)
    (put_unproved(store, other) / name).symlink_to(cache)
    seal(store, other)
    for _ in range(2):
        found = examine(store, other, hashes=hashes).differences
        assert [one.name for one in found] == [name]
        cache.rename(cache.with_name("cleaned")) if cache.exists() else None


def test_a_flipped_bit_needs_hashes(store: Store, capsys: Captured, words: Words) -> None:
    flip(prefix_of(store) / TENSORFLOW / "ops.so")
    assert seen(store) == []
    assert call("verify", str(ENV), "--hashes") == 1
    out = capsys.readouterr().out
    assert "package tensorflow: " in out and f"{TENSORFLOW}/ops.so" in out
    words("verify", out)


def test_bytecode_that_python_wrote_later_is_no_damage(store: Store) -> None:
    cache = prefix_of(store) / SITE / "__pycache__"
    cache.parent.chmod(0o755)
    cache.mkdir()
    (cache / "six.cpython-311.pyc").write_bytes(b"x")
    assert seen(store) == []
    (cache / "other.cpython-311.pyc").write_bytes(b"x")
    assert len(seen(store)) == 1


@pytest.mark.parametrize(
    "name", ["record.json", "verdict.json", "plan.json", "receipts/install.json", "manifest.txt", "manifest.json"]
)
@pytest.mark.parametrize("content", [b"", b'{"schema": 1, "a'])
def test_a_damaged_record_is_found(store: Store, name: str, content: bytes, capsys: Captured) -> None:
    path = Path(store.layout.records_folder(ENV)) / name
    path.write_bytes(content)
    assert call("verify", "--all", "--json") == 1
    result = envelope(capsys)["result"]
    assert faults(result, "verify") == []
    assert str(path) in [one["subject"] for one in result["environments"][0]["differences"]]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda path: path.write_text("-- edited\n"), "it was changed after it was published"),
        (lambda path: path.write_text(""), "it is empty"),
        (lambda path: path.unlink(), "it is missing"),
        (replace_by_folder, "is a folder, not a regular file"),
    ],
)
def test_a_damaged_modulefile_is_found_and_publishing_repairs_it(
    store: Store, damage: Callable[[Path], object], reason: str, capsys: Captured
) -> None:
    path = Path(store.layout.modules("knl")) / "lua/tensorflow/2.15.1.lua"
    damage(path)
    for words in (("--all",), (str(ENV),)):
        assert call("verify", *words, "--json") == 1
        result = envelope(capsys)["result"]
        (line,) = result["lost"]
        assert line.startswith(f"{path}: {reason}; `provision publish {ENV}` ")
        assert (result["condition"], result["environments"][0]["condition"]) == ("broken", "fresh")
    assert call("list") == 0, "it is not the environment that is broken"
    if not path.is_dir():
        assert call("publish", str(ENV)) == 0
        assert call("verify", str(ENV)) == 0


def test_a_generation_or_an_environment_that_vanished_is_found_by_all(
    store: Store, capsys: Captured, words: Words
) -> None:
    store.remove(str(prefix_of(store)))
    assert call("verify", "--all") == 1
    out = capsys.readouterr().out
    assert "module knl/tensorflow/2.15.1: " in out and str(ENV) in out
    words("verify", out)
    shutil.rmtree(store.generations.folder("knl", 1))
    assert call("verify", "--all", "--json") == 1
    result = envelope(capsys)["result"]
    assert result["condition"] == "broken"
    assert "generation 1" in result["lost"][0]
    words("verify", result["lost"][0])


def test_list_shows_what_is_broken_and_why(store: Store, capsys: Captured, words: Words) -> None:
    (prefix_of(store) / SITE).chmod(0o755)
    shutil.move(prefix_of(store) / TENSORFLOW, prefix_of(store) / "elsewhere")
    assert call("list") == 1
    row = capsys.readouterr().out.splitlines()[1]
    assert row.startswith("broken ")
    broken = existing(store).broken
    assert list(broken) == [str(ENV)] and broken[str(ENV)].startswith(f"{TENSORFLOW}: ")
    assert row.endswith(broken[str(ENV)])
    words("list", broken[str(ENV)])
    shutil.move(prefix_of(store) / "elsewhere", prefix_of(store) / TENSORFLOW)
    assert existing(store).broken == {}


def test_what_verify_found_is_remembered_until_it_is_repaired(store: Store, capsys: Captured) -> None:
    good = (prefix_of(store) / SIX).read_bytes()
    flip(prefix_of(store) / SIX)
    assert call("list") == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("published")
    assert call("verify", str(ENV), "--hashes") == 1
    capsys.readouterr()
    assert call("list") == 1
    assert capsys.readouterr().out.splitlines()[1].startswith("broken")
    edit(prefix_of(store) / SIX, good)
    assert call("verify", str(ENV), "--hashes") == 0
    capsys.readouterr()
    assert call("list") == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("published")


def test_a_record_of_a_newer_version_is_left_alone(store: Store, capsys: Captured, words: Words) -> None:
    path = Path(store.layout.records_folder(ENV)) / "record.json"
    path.write_text(path.read_text().replace('"schema": 1', '"schema": 2', 1))
    assert call("show", str(ENV), "--json") == 1
    error = envelope(capsys)["error"]
    assert error["kind"] == "newer"
    words("show", error["evidence"][0])
    assert call("list") == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("newer")
    assert '"schema": 2' in path.read_text()


# Drift of the machine

TRACES = (
    Trace(kind="system", subject="glibc", value="glibc 2.36"),
    Trace(kind="module", subject="/m/gcc/12", value="aa"),
    Trace(kind="folder", subject="/opt/gcc/bin", value="/opt/gcc-12/bin"),
    Trace(kind="library", subject="/lib/libmpi.so", value="/lib/libmpi.so.12 aa"),
    Trace(kind="python", subject="/usr/bin/python3", value="/usr/bin/python3.11 aa"),
)


def drift(same_node: bool = True, **now: str | None) -> list[tuple[str, str, bool]]:
    """What differs if these values are measured, by kind; the others are as they were."""
    values = {trace.kind: trace.value for trace in TRACES} | now
    differences, _ = judge_traces(TRACES, lambda kind, _: values[kind], same_node=same_node)
    return [(one.name, one.message, not one.passed) for one in differences]


def test_a_machine_that_changed_is_drift_and_what_is_gone_breaks(words: Words) -> None:
    assert drift() == []
    cases: tuple[tuple[dict[str, str | None], str, tuple[str, ...], bool], ...] = (
        ({"system": "glibc 2.38"}, "glibc", ("glibc 2.36", "glibc 2.38"), False),
        ({"module": "bb"}, "module /m/gcc/12", (), False),
        ({"module": None}, "module /m/gcc/12", (), True),
        ({"folder": "/opt/gcc-13/bin"}, "/opt/gcc/bin", ("/opt/gcc-12/bin", "/opt/gcc-13/bin"), False),
        (
            {"library": "/lib/libmpi.so.40 bb"},
            "/lib/libmpi.so",
            ("/lib/libmpi.so.12", "/lib/libmpi.so.40"),
            False,
        ),
        ({"library": "/lib/libmpi.so.12 bb"}, "/lib/libmpi.so", (), False),
        ({"python": None}, "/usr/bin/python3", (), True),
    )
    for now, subject, names, breaks in cases:
        ((of, reason, broken),) = drift(**now)
        assert (of, broken) == (subject, breaks)
        assert [name for name in names if name not in reason] == []
        words("verify", reason)


def test_the_system_of_a_login_node_is_not_compared_with_that_of_a_job() -> None:
    assert drift(same_node=False, system="other", library=None) == []
    _, notes = judge_traces(TRACES, lambda *_: "x", same_node=False)
    assert len(notes) == 1


def test_the_machine_of_the_proof_is_in_the_record_and_compared(store: Store, capsys: Captured) -> None:
    record = store.record(ENV)
    assert record is not None
    assert {trace.subject for trace in record.traces} >= {"glibc", "operating system"}
    path = Path(store.layout.records_folder(ENV)) / "record.json"
    data = json.loads(path.read_text())
    glibc = next(trace for trace in data["traces"] if trace["subject"] == "glibc")
    glibc["value"] = "glibc 2.17"
    path.write_text(json.dumps(data))
    head = path.with_name("manifest.json")
    manifest = json.loads(head.read_text())
    manifest["records"]["record.json"] = sha256_of(path)
    head.write_text(json.dumps(manifest))
    assert call("verify", str(ENV)) == 1
    out = capsys.readouterr().out
    assert out.startswith(f"drifted  {ENV}\n  ! glibc: ") and "glibc 2.17" in out
    assert out.endswith("1 drifted\n")
    assert existing(store).broken == {}, "what drifted is not built again by itself"


def test_a_newer_lock_and_newer_advisories_are_drift_of_what_users_load(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: Captured, words: Words
) -> None:
    record = make_record()
    lock = lock_of("tensorflow-2.15.1", "numpy==1.26.4", "keras==3.15.1")
    (drift,) = newer_lock(
        dataclasses.replace(record, identity={"lock": "another"}), lock, {"numpy": "1.26.0", "pip": "24.0"}, "x"
    )
    assert [name for name in ("`x`", "keras 3.15.1", "numpy 1.26.0") if name not in drift.message] == []
    assert drift.state == "note"
    assert "`provision upgrade --dry-run x`" in str(drift.hint)
    words("verify", f"{drift.message}\n{drift.hint}")
    assert newer_lock(dataclasses.replace(record, identity={"lock": lock.sha256}), lock, {}, "x") == []
    # The build gave Horovod the number of its patches; the lock cannot have it.
    patched, source = {"lock": "another", "patches": "0001-a:aa 0002-b:bb"}, lock_of("x", "horovod==0.28.1")
    (drift,) = newer_lock(dataclasses.replace(record, identity=patched), source, {"horovod": "0.28.1+provision.2"}, "x")
    assert "horovod" not in drift.message
    known = dataclasses.replace(record, advisories=("CVE-1",))
    (drift,) = newer_advisories(known, {"CVE-1": "keras", "CVE-2": "six"}, "x")
    assert "CVE-2 (six)" in drift.message and "CVE-1" not in drift.message
    words("verify", drift.message)
    assert newer_advisories(dataclasses.replace(record, advisories=None), {"CVE-2": "six"}, "x") == []

    env = EnvironmentId("knl", "tensorflow", "2.16.0", "1111111111")
    (put_unproved(store, env) / SITE / "six-1.0.dist-info" / "INSTALLER").write_text("uv")
    seal(store, env)
    Publisher(store).publish(env)
    assert call("verify", str(env)) == 0, "its record has no lock, and no advisory is newer"
    row = Advisory(id="CVE-9", aliases=(), package="six", spans=(Span(introduced="0"),), source="x")
    monkeypatch.setattr(verify, "read_advisories", lambda: Advisories(sources=(), rows=(row,)))
    capsys.readouterr()
    assert call("verify", str(env)) == 1
    out = capsys.readouterr().out
    assert "! advisories: " in out and "CVE-9 (six)" in out
    words("verify", out)
    Publisher(store).unpublish(env)
    assert call("verify", str(env)) == 0, "what users do not load need not be the newest"


@pytest.fixture
def loaded(store: Store, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A shell that has loaded the environment; its prefix."""
    record = store.record(ENV)
    assert record is not None
    load(record, record.prefix, monkeypatch)
    for name in ("PYTHONPATH", "LD_PRELOAD"):
        monkeypatch.delenv(name, raising=False)
    assert call("verify", "--loaded") == 0
    return Path(record.prefix)


@pytest.mark.parametrize("gone", [TENSORFLOW, SIX, f"{TENSORFLOW}/__init__.py", "bin/python"])
def test_a_shell_whose_environment_lacks_a_file_is_not_green(loaded: Path, gone: str) -> None:
    path = loaded / gone
    path.parent.chmod(0o755)
    if path.is_dir():
        path.chmod(0o755)
        shutil.rmtree(path)
    else:
        path.unlink()
    assert call("verify", "--loaded") == 1


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ((), 0),
        (("sitecustomize.py",), 0),
        (("easybuild/__init__.py", "mine.py"), 0),
        (("tensorflow/data.txt",), 0),
        (("six.py",), 1),
        (("tensorflow/__init__.py",), 1),
        (("six.cpython-311-x86_64-linux-gnu.so",), 1),
    ],
)
def test_pythonpath_is_a_fault_only_if_it_hides_a_package(
    loaded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: tuple[str, ...], code: int
) -> None:
    """A Python module of EasyBuild sets it, on purpose, to a folder with `sitecustomize.py`."""
    folder = tmp_path / "easybuild/python"
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    monkeypatch.setenv("PYTHONPATH", f"{folder}:{tmp_path / 'gone'}")
    assert call("verify", "--loaded") == code
