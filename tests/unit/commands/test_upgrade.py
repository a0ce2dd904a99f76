"""`provision upgrade`: newer packages on several archs, published on all of them or on none, and taken back."""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath

import pytest

from golden_files import Words
from parts.json_page import faults
from parts.published import put_proved
from parts.tiny import TAG, TinySite, make_site, newer_locks
from provision.errors import ConfigError, StoreError
from provision.knowledge.advisories import Advisories, Advisory, Span
from provision.machine.root.publishing import Publisher
from provision.machine.root.store import Store
from provision.machine.root.upgrades import Upgrades
from provision.model.layout import EnvironmentId, Layout
from provision.planning.upgrade_changes import ArchUpgrade, Upgrade, change_lines, upgrade_changes

Captured = pytest.CaptureFixture[str]
OLD = {arch: EnvironmentId(arch, "tensorflow", "2.21.0", "0000000000") for arch in ("a", "b", "c")}
NEW = {arch: EnvironmentId(arch, "tensorflow", "2.21.0", "1111111111") for arch in ("a", "b", "c")}


@pytest.fixture
def site(tmp_path: Path) -> TinySite:
    """Two archs of the light stack."""
    return make_site(tmp_path)


@pytest.mark.real
def test_all_archs_are_upgraded_or_none_and_one_command_goes_back(site: TinySite, words: Words) -> None:
    """Users load the stack on `a`; on `b` they load nothing yet."""
    both = ("tiny", "--site", "both", "--arch", "a", "--arch", "b")
    site.good("build", "--site", "both", "--arch", "a")
    before, lock = site.store.pointers(), site.folder / "config" / "requirements" / f"tiny-{TAG}.txt"
    locked = lock.read_text()
    locks = newer_locks(site, "1.1")
    (site.folder / "break-b").touch()
    failed = site.run("upgrade", *both, "--locks", str(locks))
    assert failed.returncode == 1
    for text in (
        "numpy 1.0 to 1.1",
        "failed on `b`, so nothing was published",
        "a: proved, not published: a/tensorflow",
    ):
        assert text in failed.stderr
    assert site.store.pointers() == before
    assert lock.read_text() == locked, "nobody else builds with the newer lock yet"
    (site.folder / "break-b").unlink()
    done = site.good("upgrade", *both, "--json")
    (note,) = [line for line in done.stderr.splitlines() if "newer locks" in line]
    words("upgrade", note)
    assert "arch a: " in done.stderr
    assert "building on arch a" not in done.stderr, "what is proved is kept"
    result = json.loads(done.stdout)["result"]
    assert faults(result, "upgrade") == []
    after = site.store.pointers()
    assert {f"{arch}/tensorflow/2.21.0": name for arch, name in result["loads"].items()} == after
    assert len(after) == 2
    assert not set(before.values()) & set(after.values())
    assert lock.read_text() == (locks / lock.name).read_text()
    site.good("upgrade", "tiny", "--site", "both", "--undo")
    assert site.store.pointers() == before
    assert lock.read_text() == locked


@pytest.fixture
def upgrades(tmp_path: Path) -> Upgrades:
    """Three archs with a published and a newer environment each, and an upgrade of them."""
    store = Store(Layout(PurePosixPath(tmp_path / "root")))
    for arch in OLD:
        put_proved(store, OLD[arch])
        put_proved(store, NEW[arch])
        if arch != "c":  # on which users load nothing yet
            Publisher(store).publish(OLD[arch])
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "x-py311.txt").write_text("old")
    (tmp_path / "x-py311.txt").write_text("new")
    return Upgrades(store, "x")


def begun(upgrades: Upgrades) -> Upgrade:
    """An upgrade that has built everything."""
    top = upgrades.store.root.parent
    archs = [ArchUpgrade(arch=arch, before=OLD[arch] if arch != "c" else None, after=NEW[arch]) for arch in OLD]
    upgrade = Upgrade(stack="x", state="building", archs=tuple(archs), locks=(str(top / "config" / "x-py311.txt"),))
    return upgrades.begin(upgrade, top)


def loads(upgrades: Upgrades) -> dict[str, str]:
    """What users of each arch load, by the fingerprint, and the lock."""
    found = {name[0]: env.rpartition("-")[2] for name, env in upgrades.store.pointers().items()}
    return found | {"lock": (upgrades.store.root.parent / "config" / "x-py311.txt").read_text()}


BEFORE = {"a": "0000000000", "b": "0000000000", "lock": "old"}
AFTER = {"a": "1111111111", "b": "1111111111", "c": "1111111111", "lock": "new"}


def test_an_arch_that_cannot_be_published_takes_the_others_back(
    upgrades: Upgrades, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish = Publisher.publish

    def fail(self: Publisher, env: EnvironmentId, *more: object) -> object:
        if env == NEW["c"]:
            raise StoreError("the disk is full", kind="no-space")
        return publish(self, env)

    upgrade = begun(upgrades)
    monkeypatch.setattr(Publisher, "publish", fail)
    with pytest.raises(StoreError, match="the disk is full"):
        upgrades.publish(upgrade)
    assert loads(upgrades) == BEFORE
    last = upgrades.read()
    assert last is not None
    assert last.state == "building"


def test_one_that_was_killed_while_it_published_is_finished(
    upgrades: Upgrades, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish = Publisher.publish

    def die(self: Publisher, env: EnvironmentId, *more: object) -> object:
        if env in (NEW["b"], OLD["b"]):
            raise KeyboardInterrupt
        return publish(self, env)

    upgrade = begun(upgrades)
    with monkeypatch.context() as patched:
        patched.setattr(Publisher, "publish", die)
        with pytest.raises(KeyboardInterrupt):
            upgrades.publish(upgrade)
    left = upgrades.read()
    assert left is not None
    assert left.state == "publishing"
    upgrades.publish(left)
    assert loads(upgrades) == AFTER
    with monkeypatch.context() as patched:
        patched.setattr(Publisher, "publish", die)
        with pytest.raises(KeyboardInterrupt):
            upgrades.undo(upgrade)
    left = upgrades.read()
    assert left is not None
    assert left.state == "undoing"
    upgrades.undo(left)
    assert loads(upgrades) == BEFORE


def test_going_back_leaves_what_was_published_meanwhile_and_needs_what_it_goes_back_to(
    upgrades: Upgrades, words: Words
) -> None:
    upgrade = begun(upgrades)
    upgrades.publish(upgrade)
    other = EnvironmentId("a", "tensorflow", "2.21.0", "2222222222")
    put_proved(upgrades.store, other)
    Publisher(upgrades.store).publish(other)
    gone = Path(upgrades.store.layout.records_folder(OLD["b"])) / "record.json"
    gone.rename(gone.with_suffix(".kept"))
    with pytest.raises(StoreError) as caught:
        upgrades.undo(upgrade)
    assert caught.value.kind == "unproved" and str(OLD["b"]) in caught.value.message
    words("upgrade", "\n".join(caught.value.to_lines()))
    assert loads(upgrades) == AFTER | {"a": "2222222222"}
    gone.with_suffix(".kept").rename(gone)
    done = upgrades.undo(upgrade)
    assert str(other) in str(done[0].note)
    words("upgrade", str(done[0].note))
    assert loads(upgrades) == BEFORE | {"a": "2222222222"}


def test_what_changes_is_versions_advisories_and_patches(words: Words) -> None:
    advisory = {"aliases": (), "source": "x"}
    known = Advisories(
        sources=(),
        rows=(
            Advisory(id="CVE-1", package="keras", spans=(Span(introduced="0", fixed="3.15"),), **advisory),
            Advisory(id="CVE-2", package="six", spans=(Span(introduced="1.17"),), **advisory),
        ),
    )
    identities = (
        {"patches": "0001-a:aa 0002-b:bb", "lock": "x", "compiler": "gcc 12"},
        {"patches": "0002-b:cc 0003-c:dd", "lock": "y", "compiler": "gcc 13"},
    )
    found = upgrade_changes(
        {"keras": "3.14", "six": "1.16", "old": "1"}, {"keras": "3.15", "six": "1.17"}, identities, known
    )
    words("upgrade", "\n".join(change_lines(found)))


def test_locks_that_could_not_be_written_are_refused_before_anything_is_built(tmp_path: Path) -> None:
    from provision.machine.root.upgrades import refuse_unwritable

    with pytest.raises(ConfigError, match="you cannot write there"):
        refuse_unwritable([Path("/gone/x-py311.txt")], "x")
