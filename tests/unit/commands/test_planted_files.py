"""Every file that the tool reads below the root, replaced by something else: no hang, no traceback, an error with a hint."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest

from golden_files import Words
from parts.cli import time_limit
from parts.memory import folder_in_memory
from parts.records import ENVIRONMENT, publish, put_published
from parts.shared_build import KEY, build
from provision import cli
from provision.errors import JobError, ProvisionError
from provision.machine.files.who_may_write import user_name
from provision.machine.install.ranks import read_reports
from provision.machine.network.data_files import choose_data
from provision.machine.root.observe import existing
from provision.machine.root.store import Store
from provision.machine.sharing import locks
from provision.machine.submission import follow as following
from provision.model.layout import Layout
from provision.schedulers.status import JobStatus

ME = user_name(os.geteuid())
ENV = f"envs/{ENVIRONMENT}"
NAME = f"{ENVIRONMENT.arch}-{ENVIRONMENT.name}-{ENVIRONMENT.version}-{ENVIRONMENT.fingerprint}"
SHA = "ab" * 32
SOURCE = "cache/sources/horovod-0.28.1.tar.gz"
JOBS = f"jobs/{ME}"


def with_verbs(*verbs: tuple[str, ...]) -> Callable[[Store], None]:
    """Run these verbs; each prints its own errors."""

    def read(store: Store) -> None:
        for words in verbs:
            assert cli.main(list(words)) in (0, 1, 2)

    return read


def take_lock(store: Store) -> None:
    """Look at a lock, then hold it."""
    path = Path(store.layout.lock(ENVIRONMENT))
    locks.holder(path)
    with store.held(path, {}):
        pass


def follow(store: Store) -> None:
    """Follow a job that failed."""
    ended = JobStatus(job="42", state="FAILED", output=str(store.jobs / "x-42.out"), exit_code="1:0")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(following, "status", lambda *_: ended)
        with contextlib.suppress(JobError):
            following.follow("42", "slurm", store, lambda event: None, pause=lambda seconds: None)


def publish_again(store: Store) -> None:
    """Copy the generation of modulefiles."""
    publish(store, ENVIRONMENT, {"lua/tensorflow/2.16.1.lua": "-- another modulefile\n"})


def install_wheel(store: Store) -> None:
    """Look for the wheels, then take one."""
    existing(store)
    store.wheels.find(KEY)


LIST, SHOW, ACTIVATE = ("list",), ("show", str(ENVIRONMENT)), ("activate", str(ENVIRONMENT))
VERIFY = ("verify", "--loaded")
browse = with_verbs(LIST, SHOW, ACTIVATE, VERIFY)

READERS: dict[str, Callable[[Store], object]] = {
    f"{ENV}": browse,
    f"{ENV}/.provision": browse,
    f"{ENV}/.provision/record.json": browse,
    f"{ENV}/.provision/activate.sh": browse,
    f"{ENV}/.provision/receipts": browse,
    f"{ENV}/.provision/receipts/create.json": lambda store: store.read_receipts(ENVIRONMENT),
    f"{ENV}/.provision/proof/report-0.json": lambda store: read_reports(
        Path(store.layout.records_folder(ENVIRONMENT)) / "proof"
    ),
    "modules/knl": browse,
    "modules/.generations/knl/000001": browse,
    "modules/.generations/knl/000001/environments/tensorflow/2.15.1": browse,
    "modules/.generations/knl/000001/lua/tensorflow/2.15.1.lua": publish_again,
    f"wheels/{KEY}": install_wheel,
    f"wheels/{KEY}/wheel.json": install_wheel,
    f"wheels/{KEY}/horovod-1-py3-none-any.whl": install_wheel,
    f"cache/wheelhouse/{SHA}.json": lambda store: store.downloads.fetched(),
    "cache/wheelhouse/a.whl": lambda store: store.downloads.fetched(),
    SOURCE: lambda store: store.downloads.has_source(str(store.root / SOURCE), (f"sha256:{SHA}",)),
    "cache/data/mnist.npz": lambda store: choose_data(Path(store.layout.data), "/programs/x"),
    f"locks/{NAME}.lock": take_lock,
    "locks/publish-knl.lock": publish_again,
    f"{JOBS}/x-42.events.jsonl": follow,
    f"{JOBS}/x-42.out": follow,
}

KINDS: dict[str, Callable[[Path], None]] = {
    "FIFO": lambda path: os.mkfifo(path),
    "folder": lambda path: path.mkdir(),
    "link to nothing": lambda path: path.symlink_to("nothing"),
    "link to itself": lambda path: path.symlink_to(path.name),
    "link to a device": lambda path: path.symlink_to("/dev/zero"),
    "1 TiB of nothing": lambda path: path.touch() or os.truncate(path, 1 << 40),
    "nested JSON": lambda path: path.write_bytes(b"[" * 200_000) and None,
    "bytes": lambda path: path.write_bytes(bytes(range(256))) and None,
    "empty": lambda path: path.touch(),
    "missing": lambda path: None,
}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with everything that the tool ever reads there."""
    root = tmp_path_factory.mktemp("template") / "root"
    store = Store(Layout(PurePosixPath(root)))
    put_published(store, modules=())
    build(store, dataclasses.replace(ENVIRONMENT, version="2.14.0"))  # leaves a wheel
    store.make_jobs()
    for path in READERS:
        if not (root / path).exists():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text("{}")
    (root / f"cache/wheelhouse/{SHA}.json").write_text(json.dumps({"files": {"a.whl": 2}}))
    return root


memory = pytest.fixture(folder_in_memory)


@pytest.fixture
def store(template: Path, memory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A copy of it, which is the root of the site `local`."""
    monkeypatch.setattr(locks, "NONSENSE_S", 0.1)
    monkeypatch.setattr(locks, "POLL_S", 0.02)
    root = memory / "root"
    shutil.copytree(template, root, symlinks=True)
    for record in root.glob("envs/*/*/*/.provision/record.json"):
        record.write_text(record.read_text().replace(str(template), str(root)))
    monkeypatch.setenv("PROVISION_ROOT", str(root))
    monkeypatch.setenv("PROVISION_ENVIRONMENT", str(ENVIRONMENT))
    monkeypatch.setenv("VIRTUAL_ENV", str(root / ENV))
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "keras"))
    return Store(Layout(PurePosixPath(root)))


def test_what_the_table_reads_is_there(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert set(store.downloads.fetched()) == {SHA}
    assert with_verbs(LIST, SHOW, ACTIVATE)(store) is None
    assert "error" not in capsys.readouterr().err
    assert all((store.root / path).exists() for path in READERS)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("path", READERS)
def test_something_else_in_place_of_a_file_is_no_hang_and_no_traceback(
    store: Store, path: str, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    place = store.root / path
    with contextlib.suppress(FileNotFoundError):  # a lock that nobody holds
        place.rename(place.with_name(".before"))
    KINDS[kind](place)
    with time_limit(20):
        try:
            READERS[path](store)
        except ProvisionError as error:
            assert error.hint, error.message
    shown = capsys.readouterr()
    assert "a bug in provision" not in shown.err
    for text in shown.err.split("error: ")[1:]:
        assert "hint: " in text


# A root that others may write, as the verbs show it


def test_verbs_that_read_warn_and_work_and_the_doctor_and_builds_refuse_a_root_that_every_user_can_write(
    store: Store, capsys: pytest.CaptureFixture[str], words: Words
) -> None:
    store.root.chmod(0o777)
    warning = f"warning: every user may write `{store.root}`; `chmod o-w {store.root}`"
    for verb in (list(LIST), list(SHOW), list(ACTIVATE)):
        cli.main(verb)
        shown = capsys.readouterr()
        assert warning in shown.err and "error: " not in shown.err
    words("list", warning.replace(str(store.root), "ROOT"))
    assert cli.main(["doctor"]) == 1
    (line,) = [line for line in capsys.readouterr().out.splitlines() if f"`{store.root}`" in line and "every" in line]
    assert line.strip().startswith("✗ ")
    assert cli.main(["pin", str(ENVIRONMENT), "--reason", "x"]) == 1
    shown = capsys.readouterr()
    assert "error: every user may write" in shown.err


def test_a_plan_and_the_doctor_do_not_hang_on_fifos(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    for path in ("cache/data/mnist.npz", f"{ENV}/.provision/record.json", "locks/publish-knl.lock", SOURCE):
        (store.root / path).unlink()
        os.mkfifo(store.root / path)
    with time_limit(60):
        assert cli.main(["plan"]) == 0
        assert cli.main(["doctor"]) in (0, 1)
    assert "a bug in provision" not in capsys.readouterr().err
