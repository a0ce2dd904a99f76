"""A root that several admins share: the second one continues, and what another member of the group planted is not believed."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from golden_files import Words
from parts.forks import Forks
from parts.members import User, shared_group, users
from parts.records import ENVIRONMENT
from parts.shared_build import KEY, build, builds_of
from provision.errors import StoreError
from provision.machine.root import claims, locks
from provision.machine.root.claims import make_claim
from provision.machine.root.shared_root import SharedRoot
from provision.machine.root.store import Store
from provision.model.layout import Layout
from provision.model.owners import Sharing

PREFIX = f"envs/{ENVIRONMENT}"
BUILT = {
    "create": "create",
    "install": "create",
    "compile": "create",
    "horovod": "create",
    "candidate": "create",
    "proof": "create",
    "publish": "create",
}


class Site:
    """A root with two admins, Alice, who owns it, and Bob; Mallory is a member of the group as well, but not an admin."""

    def __init__(self, folder: Path, builds: dict[str, Forks]) -> None:
        self.builds = builds
        self.alice, self.bob, self.mallory = users()
        self.group = shared_group().gr_name
        self.root = folder / "root"
        self.home = folder / "home"  # Alice's own
        self.home.mkdir()
        os.chown(folder, self.alice.uid, self.alice.gid)
        os.chown(self.home, self.alice.uid, self.alice.gid)
        folder.chmod(0o755)
        self.precious = self.home / "precious"
        self.precious.write_text("Alice's work\n")
        os.chown(self.precious, self.alice.uid, self.alice.gid)

    @property
    def sharing(self) -> Sharing:
        """What the profile says."""
        return Sharing(group=self.group, admins=(self.alice.name, self.bob.name), origin="the-profile.toml")

    @property
    def store(self) -> Store:
        """The store as root sees it."""
        return Store(Layout(PurePosixPath(self.root)), self.sharing)

    def build(self, user: User, *words: str, umask: int = 0o022) -> dict[str, Any]:
        """The actions of a build's steps, or its error."""
        admins = [word for name in self.sharing.admins for word in ("--admin", name)]
        return self.build_with(user, "--group", self.group, *admins, *words, umask=umask)

    def build_with(self, user: User, *words: str, umask: int = 0o022) -> dict[str, Any]:
        """The same, with this command line: a process of this user."""
        if user.name not in self.builds:
            self.builds[user.name] = builds_of(user.argv(), user.environ())
        done = self.builds[user.name].run(str(self.root), *words, umask=umask)
        assert done.stdout, done.stderr
        assert all(line.startswith("took over the lock ") for line in done.stderr.splitlines()), done.stderr
        result: dict[str, Any] = json.loads(done.stdout)
        return result

    def built_by(self, user: User, stop_after: str | None = None) -> None:
        """What a build of this user leaves; it is built in this process, which is quicker."""
        build(self.store, ENVIRONMENT, stop_after)
        for path, status in self.entries():
            if status.st_uid == 0:
                os.chown(path, user.uid, -1, follow_symlinks=False)

    def entries(self) -> list[tuple[Path, os.stat_result]]:
        """Everything below the root."""
        paths = [Path(top, name) for top, folders, files in os.walk(self.root) for name in (*folders, *files)]
        return [(path, path.lstat()) for path in (self.root, *paths)]

    def writable_by(self, mask: int) -> list[str]:
        """What has these bits in its mode, and is not a link."""
        found = [path for path, status in self.entries() if status.st_mode & mask and not stat.S_ISLNK(status.st_mode)]
        return sorted(str(path.relative_to(self.root)) for path in found)


@pytest.fixture(scope="module")
def builds() -> Iterator[dict[str, Forks]]:
    """What builds for each user, by the user's name."""
    started: dict[str, Forks] = {}
    yield started
    for one in started.values():
        one.close()


@pytest.fixture
def site(builds: dict[str, Forks]) -> Iterator[Site]:
    """A site below /tmp, because other users cannot enter pytest's folders."""
    folder = Path(tempfile.mkdtemp(prefix="provision-shared-"))
    try:
        yield Site(folder, builds)
    finally:
        shutil.rmtree(folder)


# Modes


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_the_modes_below_the_root_do_not_depend_on_the_umask(site: Site, umask: int) -> None:
    assert site.build(site.alice, umask=umask) == BUILT
    assert site.writable_by(0o002) == []
    shared = site.writable_by(0o020)
    assert {"", "envs", "modules", "wheels", "locks"} <= {path.replace(".", "", path == ".") for path in shared}
    assert not [path for path in shared if path.startswith(f"{PREFIX}/") and path != f"{PREFIX}/.provision/tests"]
    assert not [path for path in shared if path.startswith((f"wheels/{KEY}", "modules/.generations/knl/0"))]


def test_a_root_without_a_group_can_be_written_by_its_owner_alone(site: Site) -> None:
    assert site.build_with(site.alice, umask=0) == BUILT
    assert site.writable_by(0o022) == []


def test_shared_folders_have_the_group_and_setgid_and_only_some_are_not_sticky(site: Site) -> None:
    site.built_by(site.alice)
    gid = shared_group().gr_gid
    folders = {
        str(p.relative_to(site.root)): s for p, s in site.entries() if stat.S_ISDIR(s.st_mode) and s.st_mode & 0o020
    }
    assert all(status.st_gid == gid and status.st_mode & stat.S_ISGID for status in folders.values())
    replaced = {name for name, status in folders.items() if not status.st_mode & stat.S_ISVTX}
    name = f"{ENVIRONMENT.name}-{ENVIRONMENT.version}-{ENVIRONMENT.fingerprint}"
    assert replaced == {
        *(
            "modules",
            "envs/knl/tensorflow",
            "build/knl",
            f"logs/knl/{name}",
            f"{PREFIX}/.provision/tests",
        ),
    }


def test_a_group_that_does_not_exist_or_has_other_members_is_one_clear_error(site: Site, words: Words) -> None:
    with pytest.raises(StoreError, match="`nosuch`") as caught:
        SharedRoot(Layout(PurePosixPath(site.root)), Sharing(group="nosuch", origin="p.toml")).make(site.root / "locks")
    assert "p.toml" in str(caught.value.hint)
    words("build", caught.value.message)
    argv = (sys.executable, "-m", "parts.shared_build", str(site.root), "--group", site.group)
    error = json.loads(site.alice.run(*argv, groups=()).stdout)
    assert f"`{site.alice.name}`" in error["message"] and f"`{site.group}`" in error["message"]
    words("build", neutral(site, error["message"]))
    assert not site.root.exists()


# Two admins


def test_a_second_admin_continues_with_what_the_first_one_left(site: Site) -> None:
    assert site.build(site.alice) == BUILT
    assert set(site.build(site.bob).values()) == {"keep"}
    built = site.build(site.bob, "--version", "2.16.1")
    assert (built["compile"], built["publish"]) == ("reuse", "create")
    assert len(site.store.pointers()) == 2
    assert set(site.build(site.alice).values()) == {"keep"}
    assert {site.store.record(env).module for env in site.store.environments()} == {  # type: ignore[union-attr]
        "tensorflow/2.15.1",
        "tensorflow/2.16.1",
    }


@pytest.mark.parametrize("stop_after", ["create", "compile", "proof"])
def test_a_second_admin_starts_over_what_the_first_one_did_not_finish(site: Site, stop_after: str) -> None:
    site.built_by(site.alice, stop_after)
    built = site.build(site.bob)
    assert built["create"] == built["publish"] == "create"
    assert built["compile"] == ("create" if stop_after == "create" else "reuse")
    assert (site.root / PREFIX).stat().st_uid == site.bob.uid
    assert set(site.build(site.alice).values()) == {"keep"}


def test_a_build_that_was_killed_while_compiling_does_not_stop_another_admin(site: Site) -> None:
    site.built_by(site.alice, "install")
    build = site.store.layout.build(ENVIRONMENT)
    site.alice.sh(f"mkdir -p {build}/wheel && touch {build}/wheel/half")
    assert site.build(site.bob) == BUILT


def test_another_admin_publishes_again_what_the_first_one_built(site: Site) -> None:
    site.built_by(site.alice)
    (site.root / "modules" / "knl").unlink()
    record = site.store.record(ENVIRONMENT)
    built = site.build(site.bob)
    assert [name for name, action in built.items() if action == "create"] == ["publish"]
    assert site.store.record(ENVIRONMENT) == record
    assert site.store.pointers() == {ENVIRONMENT.pointer: str(ENVIRONMENT)}


def test_two_admins_test_an_environment(site: Site) -> None:
    site.built_by(site.alice)
    records = site.store.layout.records_folder(ENVIRONMENT)
    program = (
        "import sys; from pathlib import Path, PurePosixPath as P; from provision.machine.root.store import Store\n"
        "from provision.model.layout import Layout; from provision.model.owners import Sharing\n"
        "store = Store(Layout(P(sys.argv[1])), Sharing(group=sys.argv[2], admins=tuple(sys.argv[4:])))\n"
        "print(store.make_test_folder(Path(sys.argv[3]) / 'tests', below=Path(sys.argv[3])))\n"
    )
    for user in (site.alice, site.bob):
        done = user.python(program, str(site.root), site.group, str(records), site.alice.name, site.bob.name)
        assert Path(done.stdout.strip()).stat().st_uid == user.uid, done.stderr


def test_an_old_root_is_given_to_the_group_by_its_owner(site: Site, words: Words) -> None:
    assert site.build_with(site.alice) == BUILT
    error = site.build(site.bob, "--version", "2.16.1")
    assert f"`{site.root}`" in error["message"] and f"`{site.group}`" in error["message"]
    assert f"`{site.alice.name}`" in error["hint"] and f"`chgrp {site.group} {site.root}" in error["hint"]
    words("build", neutral(site, f"{error['message']}\n{error['hint']}"))
    site.build(site.alice, "--version", "2.14.0")
    assert site.build(site.bob, "--version", "2.16.1")["publish"] == "create"


# What Mallory planted


def refusal(site: Site, user: User) -> dict[str, Any]:
    """The error of a build that does not believe something."""
    error = site.build(user)
    assert error.get("kind") == "untrusted", error
    assert any(line.startswith(f"owner: {site.mallory.name} ") for line in error["evidence"])
    assert any(line.startswith("believed: root") and site.bob.name in line for line in error["evidence"])
    assert "`files.admins` in `the-profile.toml`" in error["hint"]
    return error


def neutral(site: Site, text: str) -> str:
    """The text without the names of this machine."""
    names = {str(site.root): "ROOT", site.alice.name: "ALICE", site.bob.name: "BOB", site.group: "GROUP"}
    for name, word in names.items():
        text = text.replace(name, word)
    return text


def plant(site: Site, path: str) -> None:
    """Mallory replaces an entry of a folder that the group can write with a copy of her own, and adds to it."""
    site.mallory.sh(
        'cd "$1"; cp -a "$2" .mine; mv "$2" .old; mv .mine "$2"', str(site.root / Path(path).parent), Path(path).name
    )


def test_a_replaced_prefix_is_not_believed(site: Site) -> None:
    site.built_by(site.alice)
    plant(site, PREFIX)
    assert refusal(site, site.bob)["message"].startswith(f"`{site.root / PREFIX}` is not believed")
    hint = refusal(site, site.bob)["hint"]
    subprocess.run(hint.split("`")[1], shell=True, check=True)
    assert site.build(site.bob)["create"] == "create"


def test_a_replaced_pointer_is_not_believed_and_the_hint_restores_it(site: Site) -> None:
    site.built_by(site.alice)
    pointer = site.root / "modules" / "knl"
    site.mallory.sh(
        'mkdir -p "$1/evil/environments/tensorflow"; echo "$2" > "$1/evil/environments/tensorflow/2.15.1"; ln -sfn evil "$1/knl"',
        str(pointer.parent),
        str(ENVIRONMENT),
    )
    assert site.store.pointers() == {}
    error = refusal(site, site.bob)
    restoring = error["hint"].split("`")[1]
    site.bob.sh(restoring)
    assert set(site.build(site.bob).values()) == {"keep"}


def test_a_wheel_of_another_user_is_not_installed(site: Site) -> None:
    site.store.shared.make(site.root / "wheels")
    site.mallory.sh(
        'mkdir "$1"; echo evil > "$1/x.whl"; printf \'{"file": "x.whl", "sha256": "%s"}\' $(sha256sum < "$1/x.whl" | cut -c-64)'
        ' > "$1/wheel.json"',
        str(site.root / "wheels" / KEY),
    )
    assert refusal(site, site.bob)["message"].startswith(f"`{site.root}/wheels/{KEY}` is not believed")
    with pytest.raises(StoreError, match="is not believed") as caught:
        site.store.wheels.find(KEY)
    assert caught.value.kind == "untrusted"


def test_a_member_of_the_group_cannot_replace_wheels_locks_generations_or_files_of_a_prefix(site: Site) -> None:
    site.built_by(site.alice)
    site.alice.sh('touch "$1/locks/held.lock"', str(site.root))
    for path in (f"wheels/{KEY}", f"wheels/{KEY}/wheel.json", "modules/.generations/knl/000001", "envs/knl", "logs/knl",
                 f"{PREFIX}/lib/package.py", f"{PREFIX}/.provision/record.json", "locks/held.lock"):  # fmt: skip
        with pytest.raises(AssertionError, match=r"[Pp]ermission|not permitted"):
            site.mallory.sh('mv "$1" "$1.old"', str(site.root / path))
    with pytest.raises(AssertionError, match=r"[Pp]ermission"):
        site.mallory.sh('touch "$1/lib/evil.pth"', str(site.root / PREFIX))


def test_a_prefix_that_others_can_write_is_not_believed(site: Site, words: Words) -> None:
    site.built_by(site.alice)
    (site.root / PREFIX).chmod(0o2775)
    site.mallory.sh('mv "$1/lib" "$1/old"; mkdir "$1/lib"; touch "$1/lib/evil.pth"', str(site.root / PREFIX))
    error = site.build(site.bob)
    assert (error["kind"], f"`{site.root / PREFIX}`" in error["message"]) == ("untrusted", True)
    words("build", neutral(site, error["message"]))
    find, chmod = error["hint"].split("`")[1::2]
    listed = subprocess.run(find, shell=True, check=True, capture_output=True, text=True).stdout
    assert "evil.pth" in listed
    subprocess.run(chmod, shell=True, check=True)
    assert site.writable_by(0o002) == []


@pytest.mark.parametrize("name", ["record.json", "activate.sh"])
def test_a_planted_file_of_an_environment_is_not_believed(site: Site, name: str) -> None:
    site.built_by(site.alice)
    path = site.root / PREFIX / ".provision" / name
    os.chown(path, site.mallory.uid, -1)
    read = site.store.record if name == "record.json" else site.store.activation
    with pytest.raises(StoreError, match="is not believed") as caught:
        read(ENVIRONMENT)
    assert caught.value.kind == "untrusted"


def test_a_planted_receipt_of_the_wheelhouse_is_not_believed(site: Site) -> None:
    folder = site.store.shared.make(Path(site.store.layout.wheelhouse))
    site.mallory.sh('echo "{\\"files\\": {}}" > "$1/abc.json"', str(folder))
    assert site.store.downloads.fetched() == frozenset()
    os.chown(folder / "abc.json", site.bob.uid, -1)
    assert site.store.downloads.fetched() == {"abc"}


def test_a_folder_of_another_user_on_the_way_is_refused(site: Site) -> None:
    site.store.shared.make(site.root)
    site.mallory.sh('mkdir "$1/locks"', str(site.root))
    error = refusal(site, site.alice)
    assert error["message"].startswith(f"`{site.root}/locks` is not believed")


def test_a_root_that_every_user_can_write_or_replace_is_refused(site: Site) -> None:
    site.built_by(site.alice)
    for folder, mode in ((site.root, 0o777), (site.root, 0o1777), (site.root.parent, 0o777)):
        before = stat.S_IMODE(folder.stat().st_mode)
        folder.chmod(mode)
        error = site.build(site.bob)
        assert (error["kind"], error["message"].split("`")[:2]) == ("untrusted", ["every user can write ", str(folder)])
        subprocess.run(error["hint"].split("`")[1], shell=True, check=True)
        assert set(site.build(site.bob).values()) == {"keep"}
        folder.chmod(before)


# Links


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait long for the holder of a lock that is not a claim."""
    monkeypatch.setattr(claims, "NONSENSE_S", 0.1)
    monkeypatch.setattr(locks, "POLL_S", 0.02)


FILES = {
    "a lock": "locks/knl-tensorflow-2.15.1-0123456789.lock",
    "the lock of publishing": "locks/publish-knl.lock",
    "a log": "logs/knl/tensorflow-2.15.1-0123456789/create.log",
}
FOLDERS = {
    "the locks": "locks",
    "the logs": "logs",
    "the logs of an arch": "logs/knl",
    "the wheels": "wheels",
    "the build folder": "build",
    "the pointers": "modules",
    "the generations": "modules/.generations/knl",
    "the environments": "envs/knl/tensorflow",
    "the prefix": PREFIX,
}
LINKS = FILES | FOLDERS
KINDS = ("dangling link", "FIFO", "folder")


def planted(site: Site, what: str, kind: str) -> Path:
    """Mallory put something at this path; what it would harm is Alice's."""
    path = site.root / LINKS[what]
    target = site.home if what in FOLDERS else site.precious
    site.store.shared.make(path.parent)
    match kind:
        case "link":
            path.symlink_to(target)
        case "dangling link":
            path.symlink_to(target / "nothing")
        case "hard link":
            os.link(target, path)  # the kernel may keep Mallory from doing so
        case "FIFO":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
    if kind != "hard link":
        os.chown(path, site.mallory.uid, site.mallory.gid, follow_symlinks=False)
    return path


@pytest.mark.parametrize(
    ("what", "kind"),
    [
        *((what, kind) for what in FILES for kind in ("link", "dangling link", "hard link", "FIFO", "folder")),
        *((what, "link") for what in FOLDERS),
        *((what, kind) for what in ("the logs of an arch", "the pointers", "the prefix") for kind in KINDS),
    ],
)
@pytest.mark.usefixtures("quick")
def test_something_else_at_the_path_of_a_lock_log_or_folder_does_no_harm(site: Site, what: str, kind: str) -> None:
    path = planted(site, what, kind)
    before = (sorted(site.home.iterdir()), site.precious.read_text(), site.home.stat().st_mode)
    try:
        assert build(site.store, ENVIRONMENT) == BUILT
        assert what in (*FILES, "the prefix")  # they are removed and made again, or replaced
    except StoreError as error:
        assert str(path) in error.message
        assert error.hint
    assert (sorted(site.home.iterdir()), site.precious.read_text(), site.home.stat().st_mode) == before


@pytest.mark.parametrize("what", ["a lock", "the lock of publishing", "a log"])
def test_a_link_that_another_user_planted_does_no_harm(site: Site, what: str) -> None:
    """The same as above, by two real users."""
    path = site.root / LINKS[what]
    site.built_by(site.alice, "create")
    site.alice.sh('rm -f "$1"', str(path))
    site.mallory.sh('ln -s "$2" "$1"', str(path), str(site.precious))
    result = site.build(site.alice)
    assert site.precious.read_text() == "Alice's work\n"
    assert "kind" not in result


def test_an_admin_takes_over_the_lock_that_another_admin_left_and_cannot_remove_it(site: Site) -> None:
    """The folder of locks is sticky: Alice's claim stays, and Bob's is behind it."""
    site.built_by(site.alice, "create")
    claim = json.dumps({**make_claim({}), "user": "alice", "pid": 2**22, "host": "n1"})
    lock = site.root / LINKS["a lock"]
    site.alice.sh('printf %s "$2" >"$1"', str(lock), claim)
    assert "kind" not in site.build(site.bob)
    assert lock.read_text() == claim
    assert [path.name for path in lock.parent.iterdir()] == [lock.name]
    assert "kind" not in site.build(site.alice)
    assert list(lock.parent.iterdir()) == []


def test_links_at_names_that_were_predictable_do_no_harm(site: Site) -> None:
    for folder in ("modules/.generations/knl", "wheels", "modules"):
        site.store.shared.make(site.root / folder)
    for path in (site.root, *site.root.rglob("*")):
        os.chown(path, site.alice.uid, -1)
    # The process that builds has one of these numbers.
    script = (
        'cd "$1"; for pid in $(seq "$3" "$4"); do for at in modules/.generations/knl/.next wheels/.$5; do ln -s "$2" $at.$pid;'
        " done; done"
    )
    now = int(Path("/proc/sys/kernel/ns_last_pid").read_text())
    site.mallory.sh(script, str(site.root), str(site.home), str(now), str(now + 300), KEY)
    assert site.build(site.alice) == BUILT
    assert sorted(path.name for path in site.home.iterdir()) == ["precious"]


def test_nobody_else_can_plant_a_link_where_the_scheduler_writes_the_output_of_jobs(site: Site, words: Words) -> None:
    program = (
        "import sys; from pathlib import PurePosixPath as P; from provision.machine.root.store import Store\n"
        "from provision.model.layout import Layout; from provision.model.owners import Sharing\n"
        "store = Store(Layout(P(sys.argv[1])), Sharing(group=sys.argv[2]))\nstore.make_jobs(); print(store.jobs)\n"
    )
    done = site.alice.python(program, str(site.root), site.group)
    jobs = Path(done.stdout.strip())
    assert jobs == site.root / "jobs" / site.alice.name
    with pytest.raises(AssertionError, match=r"[Pp]ermission"):
        site.mallory.sh('ln -s "$2" "$1/provision-x-42.out"', str(jobs), str(site.precious))
    with pytest.raises(AssertionError, match="not permitted"):
        site.mallory.sh('mv "$1" "$1.old"', str(jobs))
    site.mallory.sh('mkdir -m 777 "$1"', str(jobs.parent / site.bob.name))
    done = site.bob.python(program, str(site.root), site.group)
    refused = [line for line in done.stderr.splitlines() if f"`{site.bob.name}`" in line][-1]
    words("job", neutral(site, refused))
