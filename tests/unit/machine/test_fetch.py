"""Packages that are fetched for nodes without network: which plans then need no network, and which are refused."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

from golden_files import Words, facts_of, local_site, request_for, slurm_site
from parts.network import files_in, serving
from provision import cli
from provision.backends.venv.wheelhouse import download_argv, platform_tags
from provision.errors import EXIT_USAGE, StoreError
from provision.machine.network import fetching
from provision.machine.network.data_files import mnist
from provision.machine.root.caches import Downloads
from provision.machine.root.store import Store
from provision.machine.sharing.shared_root import SharedRoot
from provision.model.facts import Existing
from provision.model.layout import Layout
from provision.model.operation import Command
from provision.model.plan import Plan
from provision.planning.planner import make_plan
from provision.planning.preflight import network_faults
from provision.profile.site import Network, Site

SOURCE = "horovod-0.28.1.tar.gz"


def plan_with(site: Site, **existing: frozenset[str]) -> Plan:
    """The plan at this site where this is here already."""
    return make_plan(request_for(site), facts_of(site), Existing(**existing))


def installs(plan: Plan) -> list[Command]:
    """The commands that install a lock."""
    commands = [operation for step in plan.steps for operation in step.operations if isinstance(operation, Command)]
    return [command for command in commands if "--require-hashes" in command.argv]


def offline(site: Site) -> Site:
    """The same site, but its nodes have no network."""
    return dataclasses.replace(site, network=Network(login="no", compute="no", proxy=None, download_node=None))


@pytest.mark.parametrize("site", [local_site(), slurm_site()], ids=["local", "slurm"])
def test_a_plan_uses_the_index_unless_everything_was_fetched(site: Site) -> None:
    locks = frozenset(lock.sha256 for lock in request_for(site).locks)
    whole = plan_with(site, fetched=locks, sources=frozenset({SOURCE}))
    house = whole.prefix.split("/envs/")[0] + "/cache/wheelhouse"
    assert whole.not_fetched == ()
    assert whole.environment == plan_with(site).environment, "the origin is not in the fingerprint"
    assert not whole.asks_network
    assert len(installs(whole)) == len(locks)
    for command in installs(whole):
        assert command.argv[command.argv.index("--no-index") + 1 :][:2] == ("--find-links", house)
    nothing: frozenset[str] = frozenset()
    for fetched, sources, missing in (
        (frozenset(sorted(locks)[1:]), frozenset({SOURCE}), 1),
        (locks, nothing, 1),
        (nothing, nothing, len(locks) + 1),
    ):
        partly = plan_with(site, fetched=fetched, sources=sources)
        assert partly.asks_network
        assert len(partly.not_fetched) == missing
        assert not [command for command in installs(partly) if "--no-index" in command.argv]


def test_a_build_without_network_is_refused_with_what_to_fetch() -> None:
    for site in (local_site(), slurm_site()):
        request = dataclasses.replace(request_for(site), site=offline(site))
        plan = make_plan(request, facts_of(site), Existing())
        (fault,) = network_faults(request, plan)
        assert fault.evidence[-1] == f"not fetched: {SOURCE}"
        assert "provision fetch --site" in str(fault.hint)
        assert network_faults(request_for(site), plan) == ()


def test_an_existing_environment_needs_no_network() -> None:
    site = offline(local_site())
    request = dataclasses.replace(request_for(local_site()), site=site)
    first = make_plan(request, facts_of(local_site()), Existing())
    receipts = frozenset(step.name for step in first.steps) - {"compile", "publish"}
    existing = Existing(receipts={str(first.environment): receipts}, wheels=frozenset({first.abi_key}))
    assert network_faults(request, make_plan(request, facts_of(local_site()), existing)) == ()


def test_downloads_are_for_the_python_and_cpu_of_the_nodes() -> None:
    here = download_argv("/t/python", "r.txt", "d", minor="3.7", foreign=None)
    assert here[here.index("--python-version") :][:2] == ("--python-version", "3.7")
    assert "--platform" not in here
    foreign = download_argv("/t/python", "r.txt", "d", minor="3.11", foreign="aarch64")
    tags = [word for at, word in enumerate(foreign) if foreign[at - 1] == "--platform"]
    assert tags == list(platform_tags("aarch64"))
    assert {"manylinux_2_17_aarch64", "manylinux2014_aarch64"} <= set(tags)
    assert "manylinux2010_aarch64" not in tags
    assert "manylinux2010_x86_64" in platform_tags("x86_64")
    assert "--require-hashes" in foreign


def downloads(root: Path) -> Downloads:
    """The downloads below this root, with a wheelhouse."""
    downloads = Downloads(SharedRoot(Layout(PurePosixPath(root))))
    downloads.shared.make(downloads.wheelhouse)
    return downloads


def test_a_lock_is_fetched_only_while_all_its_files_are_complete(tmp_path: Path) -> None:
    kept = downloads(tmp_path / "root")
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a-1-py3-none-any.whl").write_bytes(b"12345")
    (tmp_path / "files" / "a-1-py3-none-any.whl").chmod(0o600)
    kept.keep_fetched(tmp_path / "files", "abc", "/somewhere/a-py311.txt")
    wheel = kept.wheelhouse / "a-1-py3-none-any.whl"
    assert set(kept.fetched()) == {"abc"}
    assert wheel.stat().st_mode & 0o777 == 0o644
    wheel.write_bytes(b"123")
    assert set(kept.fetched()) == set()
    wheel.unlink()
    assert set(kept.fetched()) == set()
    (kept.wheelhouse / "abc.json").write_text("{")
    assert set(kept.fetched()) == set()


def test_a_full_disk_leaves_no_receipt(small_disk: Path, tmp_path: Path) -> None:
    kept = downloads(small_disk / "root")
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a-1-py3-none-any.whl").write_bytes(bytes(8_000_000))
    with pytest.raises(StoreError):
        kept.keep_fetched(tmp_path / "files", "abc", "a-py311.txt")
    assert set(kept.fetched()) == set()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """A real HTTP server on this machine with one file that is called mnist.npz."""
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "mnist.npz").write_bytes(b"seventy thousand digits")

    with serving(files_in(folder)) as port:
        yield f"http://127.0.0.1:{port}/mnist.npz"


def test_fetch_names_the_download_node_of_the_site(capsys: pytest.CaptureFixture[str], words: Words) -> None:
    assert cli.main(["fetch", "--site", "nyu-greene", "--arch", "gpu", "--python", "3.7"]) == EXIT_USAGE
    (note,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("note: ")]
    assert "`nyu-greene`" in note and "`ssh gdtn`" in note
    words("fetch", note)


def test_mnist_is_kept_only_if_its_hash_is_correct(
    server: str,
    store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: Words,
) -> None:
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "keras"))
    served = dataclasses.replace(mnist(), url=server)
    monkeypatch.setattr(fetching, "mnist", lambda: served)
    assert fetching.fetch_data(store) == "digits"
    err = capsys.readouterr().err
    assert "digits" in err
    words("fetch", err.replace(server, "<server>"))
    assert not (tmp_path / "root" / "cache" / "data" / "mnist.npz").exists()
    right = dataclasses.replace(served, hash=hashlib.sha256(b"seventy thousand digits").hexdigest())
    monkeypatch.setattr(fetching, "mnist", lambda: right)
    assert fetching.fetch_data(store) == "mnist"
    assert (tmp_path / "root" / "cache" / "data" / "mnist.npz").read_bytes() == b"seventy thousand digits"
    gone = dataclasses.replace(right, url="http://127.0.0.1:9/gone")
    monkeypatch.setattr(fetching, "mnist", lambda: gone)
    assert fetching.fetch_data(store) == "mnist"
