"""Another user exchanges a name while modes change or something is removed: only what was looked at is changed or removed."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

from parts.exchange import at_each_moment
from parts.forks import Forks
from parts.users import User, members, shared_group
from provision.errors import StoreError
from provision.machine.root.store import Store
from provision.model.layout import Layout
from provision.model.trust import Sharing


class Site:
    """A root of Alice; Mallory is a member of its group, and so an admin, but wants to harm Alice."""

    def __init__(self, folder: Path) -> None:
        self.alice, _, self.mallory = members()
        self.root, self.home = folder / "root", folder / "home"
        self.gid = shared_group().gr_gid
        self.put(folder, self.alice)
        self.put(self.home, self.alice)
        self.secret = self.put(self.home / "secret", self.alice, 0o600, "Alice's work\n")

    @property
    def store(self) -> Store:
        """The store of the root."""
        sharing = Sharing(group=shared_group().gr_name)
        return Store(Layout(PurePosixPath(self.root)), sharing)

    def put(self, path: Path, user: User, mode: int = 0o755, text: str | None = None) -> Path:
        """A folder, or a file with this text, of this user."""
        if text is None:
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.write_text(text)
        os.chown(path, user.uid, self.gid if path.is_relative_to(self.root) else user.gid)
        path.chmod(mode)
        return path

    def renew(self, *shared: str) -> None:
        """An empty root with these folders of Alice, which the group can write."""
        shutil.rmtree(self.root, ignore_errors=True)
        self.put(self.root, self.alice, 0o2775)
        for name in shared:
            self.put(self.root / name, self.alice, 0o2775)

    def of_home(self) -> list[tuple[str, int, int, int]]:
        """What is in Alice's home, with mode, owner and group."""
        paths = [self.home, *sorted(self.home.rglob("*"))]
        return [(path.name, (s := path.lstat()).st_mode, s.st_uid, s.st_gid) for path in paths]


@pytest.fixture
def site(open_folder: Path) -> Site:
    """A site that other users can enter."""
    return Site(open_folder)


def exchange(path: Path, target: Path) -> None:
    """Put a link to `target` in the place of this path, if something is there; as the user who runs."""
    with contextlib.suppress(FileNotFoundError):
        path.rename(path.with_name("away"))
        path.symlink_to(target)


@pytest.mark.parametrize("name", ["modules/.generations", "envs/knl/tensorflow", "logs/knl/x"])
def test_a_folder_that_is_exchanged_for_a_link_shares_no_home(site: Site, name: str) -> None:
    path, before = site.root / name, site.of_home()

    def prepare() -> None:
        site.renew(*map(str, reversed(PurePosixPath(name).parents[:-1])), name)
        path.chmod(0o755)  # so that there is something to change

    moments = at_each_moment(
        site.alice,
        site.mallory,
        prepare=prepare,
        act=lambda: site.store.shared.make(path / "zen2"),
        exchange=lambda: exchange(path, site.home),
    )
    assert moments > 3
    assert site.of_home() == before


@pytest.mark.parametrize(("name", "target"), [("d", "secret"), ("d", "."), ("d/e", "secret"), ("", ".")])
def test_a_folder_in_what_is_removed_that_is_exchanged_for_a_link_does_no_harm(
    site: Site, name: str, target: str
) -> None:
    trash, before = site.root / "envs/knl/tensorflow/.x.1.abcdef", site.of_home()

    def prepare() -> None:
        site.renew("envs", "envs/knl", "envs/knl/tensorflow")
        for folder, mode in (
            (trash, 0o777 if name else 0o577),
            (trash / "d", 0o577 if name == "d" else 0o777),
            (trash / "d/e", 0o577),
        ):
            site.put(folder, site.mallory, mode)

    moments = at_each_moment(
        site.alice,
        site.mallory,
        prepare=prepare,
        act=lambda: site.store.remove(str(trash)),
        exchange=lambda: exchange(trash / name, site.home / target),
    )
    assert moments > 3
    assert site.of_home() == before


# Exchanges a folder and a link beside it as fast as it can, until its input ends.
EXCHANGE = """
import contextlib, ctypes, os, select, sys
path, beside, target = (os.fsencode(word) for word in sys.argv[1:])
exchange = ctypes.CDLL(None).renameat2
print("ready", flush=True)
times = 0
while not select.select([0], [], [], 0)[0]:
    with contextlib.suppress(OSError):  # it may not write there any more
        if not os.path.lexists(beside):
            os.symlink(target, beside)
        times += exchange(-100, path, -100, beside, 2) == 0
print(times)
"""
WORK = """
from parts.shared_build import *
from provision.machine.root.publishing import Publisher
from provision.machine.root.removing import Remover
warm_up()

def main(words):
    locks.NONSENSE_S, locks.POLL_S = 0.1, 0.02
    root, group, lenient = words
    store = Store(Layout(PurePosixPath(root)), Sharing(group=group, lenient=lenient == "lenient"))
    publisher, remover = Publisher(store), Remover(store)
    for act in (
        lambda: build(store, ENVIRONMENT),
        lambda: publisher.unpublish(ENVIRONMENT),
        lambda: publisher.publish(ENVIRONMENT),
        lambda: publisher.roll_back(ENVIRONMENT.arch, None),
        lambda: build(store, ENVIRONMENT),
        lambda: remover.carry_out([], remover.leftovers([], [], 2)),
    ):
        try:
            act()
            print("done")
        except ProvisionError as error:
            print(error.kind)
        except FileNotFoundError:
            print("vanished")
    return 0
"""


@pytest.fixture
def work(site: Site) -> Iterator[Forks]:
    """What Alice does."""
    forks = Forks(site.alice.argv(), site.alice.environ(), WORK)
    yield forks
    forks.close()


@pytest.mark.parametrize("member", [True, False], ids=["an admin", "whoever may write by the mode"])
def test_a_folder_that_another_user_exchanges_all_the_time_harms_no_home(site: Site, work: Forks, member: bool) -> None:
    """While Alice builds, publishes, rolls back and prunes. Who is no admin can do so only where a mode lets everybody write.

    An admin who does it on purpose can have new files made in the place to which the link leads; what was there stays as it was.
    """
    before = site.of_home()
    mallory = dataclasses.replace(site.mallory, member=member)
    words = (str(site.root), shared_group().gr_name)
    site.renew()
    assert set(work.run(*words, "").stdout.split()) == {"done"}
    for name in ("modules", "modules/.generations/knl", "locks", "envs/knl/tensorflow"):
        path = site.root / name
        if not member:
            path.parent.chmod(0o2777)
        loop = (sys.executable, "-c", EXCHANGE, str(path), str(path.with_name("beside")), str(site.home))
        with subprocess.Popen(
            mallory.argv(*loop), env=mallory.environ(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as attack:
            assert attack.stdout is not None and attack.stdout.readline() == "ready\n"
            done = [work.run(*words, lenient) for lenient in ("", "", "lenient")]
            times = int(attack.communicate("end\n")[0])
        beside = path.with_name("beside")
        if path.is_symlink():
            path.unlink()
            beside.rename(path)
        site.store.remove(str(beside))
        path.parent.chmod(0o2775)
        assert [one.stderr for one in done if one.returncode] == [], name
        now = site.of_home()
        assert (set(before) <= set(now)) if member else (now == before), name
        assert member or all("untrusted" in one.stdout for one in done[:2]), (name, done)
        assert times > 10
        assert set(work.run(*words, "").stdout.split()) == {"done"}, name


def test_what_is_removed_behind_a_link_of_another_user_stays(site: Site) -> None:
    site.renew("envs", "envs/knl")
    left = site.put(site.home / ".x.1.abcdef", site.alice)
    link = site.root / "envs/knl/planted"
    link.symlink_to(site.home)
    os.chown(link, site.mallory.uid, site.gid, follow_symlinks=False)
    with pytest.raises(StoreError) as caught:
        site.store.remove(str(link / left.name))
    assert caught.value.kind == "untrusted"
    assert left.is_dir()


def test_an_admin_may_link_a_folder_to_another_disk(site: Site) -> None:
    site.renew()
    disk = site.put(site.root.parent / "disk", site.alice, 0o755)
    (site.root / "cache").symlink_to(disk)
    os.chown(site.root / "cache", site.alice.uid, site.gid, follow_symlinks=False)
    with pytest.raises(StoreError, match="is not shared with the group"):
        site.store.shared.make(site.root / "cache/sources")
    assert stat.S_IMODE(disk.stat().st_mode) == 0o755, "what a link leads to is never changed"
    os.chown(disk, site.alice.uid, site.gid)
    disk.chmod(0o2775)
    assert site.store.shared.make(site.root / "cache/sources").is_dir()
    site.store.remove(str(site.root / "cache/sources"))
    assert not list(disk.iterdir())


@pytest.mark.parametrize("what", ["folder", "file"])
def test_what_is_mounted_in_a_folder_that_is_removed_stays(tmp_path: Path, store: Store, what: str) -> None:
    """Also if it is of the same file system: a bind mount has the same device."""
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "work").write_text("of years")
    trash = store.root / "envs/knl/tensorflow/.x.1.abcdef"
    (trash / "a/b").mkdir(parents=True)
    for name in ("first", "a/last"):
        (trash / name).touch()
    at, source = (trash / "a/b", precious) if what == "folder" else (trash / "first", precious / "work")
    if subprocess.run(["mount", "--bind", source, at], capture_output=True, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        with pytest.raises(StoreError) as caught:
            store.remove(str(trash))
        assert str(at) in caught.value.message
        assert (precious / "work").read_text() == "of years"
        assert not (trash / "a/last").exists(), "the rest is gone"
    finally:
        subprocess.run(["umount", at], check=True)
    store.remove(str(trash))
    assert not trash.exists()


def test_read_only_folders_of_ours_are_removed(site: Site) -> None:
    site.renew("envs")
    for folder in ("envs/x", "envs/x/y"):
        site.put(site.root / folder, site.alice, 0o755)
    site.put(site.root / "envs/x/y/file", site.alice, 0o400, "x")
    for folder, mode in (("envs/x/y", 0o000), ("envs/x", 0o555)):
        (site.root / folder).chmod(mode)
    program = "import sys; from pathlib import PurePosixPath as P; from provision.machine.root.store import Store\n"
    program += "from provision.model.layout import Layout; Store(Layout(P(sys.argv[1]))).remove(sys.argv[2])"
    done = site.alice.python(program, str(site.root), str(site.root / "envs/x"))
    assert done.returncode == 0, done.stderr
    assert not list((site.root / "envs").iterdir())
