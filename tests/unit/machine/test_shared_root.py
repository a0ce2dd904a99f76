"""A root that several admins share: each of them builds, tests, publishes and removes there, and nobody else may write."""

from __future__ import annotations

import dataclasses
import grp
import json
import os
import stat
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from golden_files import Words
from parts.forks import Forks
from parts.records import ENVIRONMENT
from parts.shared_build import KEY, build, builds_of
from parts.users import VICTIM, User, members, shared_group, stranger
from provision.errors import StoreError
from provision.machine.files.who_may_write import group_name
from provision.machine.root.store import Store
from provision.machine.sharing import locks
from provision.machine.sharing.claims import make_claim
from provision.machine.sharing.shared_root import SharedRoot
from provision.model.layout import Layout
from provision.model.trust import Sharing

PREFIX = f"envs/{ENVIRONMENT}"
BUILT = dict.fromkeys(("create", "install", "compile", "horovod", "candidate", "proof", "publish"), "create")
# How programs of Alice and Bob begin.
STORE = """
import sys; from pathlib import PurePosixPath
from provision.machine.root.removing import Remover; from provision.machine.root.store import Store
from provision.model.layout import EnvironmentId, Layout; from provision.model.trust import Sharing
store = Store(Layout(PurePosixPath(sys.argv[1])), Sharing(group=sys.argv[2], lenient="lenient" in sys.argv))
"""


class Site:
    """A root with two admins, Alice, who owns it, and Bob, a member of its group; Mallory is another user."""

    def __init__(self, folder: Path, builds: dict[str, Forks]) -> None:
        self.builds = builds
        self.alice, self.bob, mallory = members()
        self.mallory = dataclasses.replace(mallory, member=False)
        self.group = shared_group().gr_name
        self.root = folder / "root"
        self.home = folder / "home"  # Alice's own
        self.home.mkdir()
        os.chown(folder, self.alice.uid, self.alice.gid)
        os.chown(self.home, self.alice.uid, self.alice.gid)
        self.precious = self.home / "precious"
        self.precious.write_text("Alice's work\n")
        os.chown(self.precious, self.alice.uid, self.alice.gid)

    @property
    def sharing(self) -> Sharing:
        """What the profile says."""
        return Sharing(group=self.group, origin="the-profile.toml")

    @property
    def store(self) -> Store:
        """The store as root sees it."""
        return Store(Layout(PurePosixPath(self.root)), self.sharing)

    def build(self, user: User, *words: str, umask: int = 0o022) -> dict[str, Any]:
        """The actions of a build's steps, or its error."""
        return self.build_with(user, "--group", self.group, *words, umask=umask)

    def build_with(self, user: User, *words: str, umask: int = 0o022) -> dict[str, Any]:
        """The same, with this command line: a process of this user."""
        if user.name not in self.builds:
            self.builds[user.name] = builds_of(user.argv(), user.environ())
        done = self.builds[user.name].run(str(self.root), *words, umask=umask)
        assert done.stdout, done.stderr
        assert all(line.startswith("took over the lock ") for line in done.stderr.splitlines()), done.stderr
        result: dict[str, Any] = json.loads(done.stdout)
        return result

    def python(self, user: User, program: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Let this user run a program with the store."""
        return user.python(STORE + program, str(self.root), self.group, *words)

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
def site(builds: dict[str, Forks], open_folder: Path) -> Site:
    """A site that other users can enter."""
    return Site(open_folder, builds)


# Modes


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_the_modes_below_the_root_do_not_depend_on_the_umask_nor_are_sticky(site: Site, umask: int) -> None:
    assert site.build(site.alice, umask=umask) == BUILT
    assert site.writable_by(0o002) == []
    shared = site.writable_by(0o020)
    status = [(site.root / path).lstat() for path in shared]
    assert {(one.st_gid, one.st_mode) for one in status} == {(shared_group().gr_gid, stat.S_IFDIR | 0o2775)}
    assert {"", "envs", "modules", "wheels", "locks"} <= {path.replace(".", "", path == ".") for path in shared}
    assert not [path for path in shared if path.startswith(f"{PREFIX}/") and path != f"{PREFIX}/.provision/tests"]
    assert not [path for path in shared if path.startswith((f"wheels/{KEY}", "modules/.generations/knl/0"))]


@pytest.mark.parametrize("shared", [True, False])
def test_another_user_can_write_nothing_below_the_root(site: Site, shared: bool) -> None:
    """No race is left to win: each of them begins with writing a folder of the root."""
    (site.build if shared else site.build_with)(site.alice, umask=0)
    found = site.mallory.run("find", str(site.root), "-writable", "!", "-type", "l")
    assert (found.stdout, found.stderr) == ("", "")
    for attack in (
        'mkdir "$1/modules/evil"',
        'mv "$1/modules/.generations" "$1/modules/.old"',
        'ln -sfn /tmp "$1/modules/knl"',
        'mv "$1/$2" "$1/$2.old"',
        'echo > "$1/locks/x.lock"',
    ):
        with pytest.raises(AssertionError, match=r"[Pp]ermission|not permitted"):
            site.mallory.sh(attack, str(site.root), PREFIX)


VERBS = """
import json, os, sys
from parts.cli import run
os.environ["PROVISION_ROOT"] = sys.argv[1]
for words in sys.argv[3:]:
    done = run(*words.split())
    print(json.dumps([done.returncode, done.stderr]))
"""


@pytest.mark.parametrize("shared", [True, False])
def test_verbs_that_write_refuse_who_is_no_admin_and_those_that_look_do_not(site: Site, shared: bool) -> None:
    (site.build if shared else site.build_with)(site.alice)
    (site.root / "cache" / "installers" / "x").mkdir(parents=True)  # a leftover for `prune`
    env = str(ENVIRONMENT)
    writes = [f"unpublish {env}", f"pin {env}", f"pin {env} --off", "prune --yes"]
    writes += ["upgrade tensorflow-2.21.0", f"publish {env} --hidden", f"pack {env}"]
    done = site.mallory.python(VERBS, str(site.root), site.group, *writes, "list", "prune", f"verify {env}")
    answers = dict(zip([*writes, "list", "prune", "verify"], map(json.loads, done.stdout.splitlines()), strict=True))
    for words in writes:
        code, err = answers[words]
        assert code == 1, words
        assert f"`{site.mallory.name}` may not write below `{site.root}`" in err, (words, err)
        assert f"admins of the root: root, {site.alice.name}" in err and "hint: ask one of them" in err
    for words in ("list", "prune", "verify"):
        assert "may not write" not in answers[words][1]


def test_a_group_that_does_not_exist_or_has_other_members_is_one_clear_error(site: Site, words: Words) -> None:
    with pytest.raises(StoreError, match="`nosuch`") as caught:
        SharedRoot(Layout(PurePosixPath(site.root)), Sharing(group="nosuch", origin="p.toml")).make(site.root / "locks")
    assert "p.toml" in str(caught.value.hint)
    words("build", caught.value.message)
    argv = (sys.executable, "-m", "parts.shared_build", str(site.root), "--group", site.group)
    error = json.loads(dataclasses.replace(site.alice, member=False).run(*argv).stdout)
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


def test_another_admin_publishes_again_what_the_first_one_built(site: Site) -> None:
    site.built_by(site.alice)
    (site.root / "modules" / "knl").unlink()
    record = site.store.record(ENVIRONMENT)
    built = site.build(site.bob)
    assert [name for name, action in built.items() if action == "create"] == ["publish"]
    assert site.store.record(ENVIRONMENT) == record
    assert site.store.pointers() == {ENVIRONMENT.pointer: str(ENVIRONMENT)}


def test_another_admin_removes_what_the_first_one_built_and_the_first_one_frees_its_space(site: Site) -> None:
    site.built_by(site.alice)
    (site.root / "modules" / "knl").unlink()
    program = (
        "remover = Remover(store)\n"
        "print(remover.residents()[0].foreign if remover.residents() else None)\n"
        "print(remover.remove(EnvironmentId.parse(sys.argv[3])) if remover.residents() else remover.carry_out([],"
        " remover.leftovers([], [], 9)))\n"
    )
    words = (program, str(ENVIRONMENT))
    done = site.python(site.bob, *words)
    assert done.stdout.splitlines() == [site.alice.name, "None"], done.stderr
    assert site.store.environments() == []
    (left,) = (site.root / PREFIX).parent.glob(".*.removed.*")
    assert f"`{site.alice.name}` owns it" in site.python(site.bob, *words).stdout
    assert left.is_dir()
    site.python(site.alice, *words)
    assert not left.exists()


def test_the_mode_of_the_root_names_its_admins_if_the_profile_does_not(site: Site) -> None:
    site.root.mkdir()
    os.chown(site.root, site.alice.uid, shared_group().gr_gid)
    site.root.chmod(0o2775)
    assert site.build_with(site.alice) == BUILT
    assert site.build_with(site.bob, "--version", "2.16.1")["publish"] == "create"


def test_an_old_root_is_given_to_the_group_by_its_owner(site: Site, words: Words) -> None:
    assert site.build_with(site.alice) == BUILT
    error = site.build(site.bob, "--version", "2.16.1")
    assert f"`{site.root}`" in error["message"] and f"`{site.group}`" in error["message"]
    assert f"`{site.alice.name}`" in error["hint"] and f"`chgrp {site.group} {site.root}" in error["hint"]
    words("build", neutral(site, f"{error['message']}\n{error['hint']}"))
    site.build(site.alice, "--version", "2.14.0")
    assert site.build(site.bob, "--version", "2.16.1")["publish"] == "create"


def neutral(site: Site, text: str) -> str:
    """The text without the names of this machine."""
    names = {str(site.root): "ROOT", str(site.root.parent): "FOLDER", site.group: "GROUP"}
    names |= {site.alice.name: "ALICE", site.bob.name: "BOB", f"`{site.mallory.name}`": "MALLORY"}
    for name, word in names.items():
        text = text.replace(name, word)
    return text


# Roots that others may write


def acl(*rows: tuple[int, int, int]) -> bytes:
    """An access list with these rows (tag, rights, number) between those of the owner and of all others."""
    rows = ((1, 7, 2**32 - 1), *rows, (16, 7, 2**32 - 1), (32, 5, 2**32 - 1))
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *row) for row in rows)


def set_acl(path: Path, *rows: tuple[int, int, int]) -> None:
    """Give a folder an access list; the test is skipped if the file system has none."""
    try:
        os.setxattr(path, "system.posix_acl_access", acl(*rows))
    except OSError as error:
        pytest.skip(f"the file system has no access control lists: {error}")


def refused(site: Site, path: Path, who: str, words: Words) -> None:
    """A build is refused, the list of what is there is not; and the build goes on after the command of the hint."""
    error = site.build(site.alice)
    assert (error.get("kind"), error["message"].split(" may write ")[0]) == ("untrusted", who), error
    assert f"`{path}`" in error["message"]
    assert any(line.startswith("admins of the root: root, ") for line in error["evidence"])
    words("build", neutral(site, error["message"]))
    assert site.store.pointers() and site.store.record(ENVIRONMENT)
    command = next(part for part in error["hint"].split("`") if part.startswith(("chmod", "setfacl")))
    if not command.startswith("setfacl"):  # it may not be installed
        subprocess.run(command, shell=True, check=True)
        assert set(site.build(site.alice).values()) == {"keep"}


def test_no_test_runs_a_hint_for_a_folder_that_all_users_share() -> None:
    """The hook of `conftest.py`. Without it nothing happens either: the mode is the same, and `true` does nothing."""
    tmp = Path("/tmp")
    changes = (
        lambda: tmp.chmod(stat.S_IMODE(tmp.stat().st_mode)),
        lambda: subprocess.run("true chmod o-w '/tmp/'", shell=True, check=True),
        lambda: subprocess.run(["true", "setfacl", "-x", "u:1", "/tmp"], check=True),
    )
    for change in changes:
        with pytest.raises(AssertionError, match="is shared by all users"):
            change()


@pytest.mark.parametrize(("name", "mode"), [("root", 0o2777), ("root", 0o3777), (".", 0o777), ("root/envs", 0o2777)])
def test_verbs_that_write_refuse_what_every_user_may_write(site: Site, name: str, mode: int, words: Words) -> None:
    site.built_by(site.alice)
    path = site.root.parent / name
    path.chmod(mode)
    refused(site, path, "every user", words)


def test_verbs_that_write_refuse_what_another_group_may_write(site: Site, words: Words) -> None:
    site.built_by(site.alice)
    users = grp.getgrnam("users")
    os.chown(site.root / "modules", -1, users.gr_gid)
    (site.root / "modules").chmod(0o775)
    (site.root / "modules" / "knl").unlink()  # so that there is something to do
    error = site.build(site.alice)
    assert (error["kind"], error["message"].split(" may ")[0]) == ("untrusted", "group `users`")
    words("build", neutral(site, error["message"]))


def test_a_root_that_the_umask_gave_to_the_group_of_all_users_is_refused(site: Site, words: Words) -> None:
    """Without `files.group`, only the setgid bit shows that its owner shares it on purpose."""
    assert site.build_with(site.alice) == BUILT
    os.chown(site.root, -1, shared_group().gr_gid)
    site.root.chmod(0o775)
    error = site.build_with(site.alice)
    assert error["kind"] == "untrusted" and f"group `{site.group}`" in error["message"]
    assert error["hint"].endswith(
        f"`chmod g-w {site.root}`; or, if its members are the admins: `chmod g+ws {site.root}`"
    )
    words("build", neutral(site, error["message"]))
    site.root.chmod(0o2775)
    assert "kind" not in site.build_with(site.alice)


@pytest.mark.parametrize("tag", [2, 8])
def test_verbs_that_write_refuse_users_and_groups_of_an_access_list(site: Site, tag: int, words: Words) -> None:
    site.built_by(site.alice)
    number = site.mallory.uid if tag == 2 else grp.getgrnam("users").gr_gid
    set_acl(site.root, *sorted([(4, 7, 2**32 - 1), (tag, 7, number)]))
    error = site.build(site.alice)
    assert f"`setfacl -x {'u' if tag == 2 else 'g'}:{number} {site.root}`" in error["hint"]
    refused(site, site.root, f"user `{site.mallory.name}`" if tag == 2 else "group `users`", words)


def test_a_folder_above_that_a_project_may_write_is_a_note(site: Site) -> None:
    site.built_by(site.alice)
    os.chown(site.root.parent, -1, grp.getgrnam("users").gr_gid)
    site.root.parent.chmod(0o2775)
    assert set(site.build(site.alice).values()) == {"keep"}
    shared = site.store.shared.admins
    assert shared.faults() == []
    (note,) = shared.notes()
    assert note.message.startswith(f"group `users` may write `{site.root.parent}`, which contains the root")


def test_a_private_group_is_its_owner(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the umask 002 of systems where each user has such a group."""
    assert site.build_with(site.alice) == BUILT
    os.chown(site.root, site.alice.uid, site.alice.gid)
    site.root.chmod(0o2775)
    private = site.alice.name == group_name(site.alice.gid)
    assert (site.store.shared.admins.faults() == []) == private


def test_the_owner_takes_modules_from_users_whoever_may_write(site: Site) -> None:
    site.built_by(site.alice)
    program = "print(store.generations.roll_back('knl', lambda current, found: 1).number)\n"
    for user, lenient, good in ((site.alice, "lenient", True), (site.alice, "", False), (site.bob, "lenient", False)):
        site.root.chmod(0o2777)
        done = site.python(user, program, lenient)
        assert (done.stdout == "1\n") == good, done.stderr


# Who may read


def test_only_readers_enter_a_root_that_names_them(site: Site) -> None:
    readers = site.mallory.name
    sharing = Sharing(readers=group_name(site.mallory.gid))
    store = Store(Layout(PurePosixPath(site.root)), sharing)
    build(store, ENVIRONMENT)
    assert stat.S_IMODE(site.root.stat().st_mode) == 0o750
    for gid, entered in ((site.mallory.gid, True), (VICTIM, False)):
        done = dataclasses.replace(stranger(VICTIM), gid=gid).run("ls", str(site.root))
        assert (done.returncode == 0) == entered, readers


def test_readers_of_a_shared_root_need_an_access_list_and_the_hint_says_how(site: Site, words: Words) -> None:
    sharing = Sharing(group=site.group, readers="users", origin="the-profile.toml")
    shared = SharedRoot(Layout(PurePosixPath(site.root)), sharing)
    with pytest.raises(StoreError) as caught:
        shared.make(site.root / "locks")
    assert f"`setfacl -m g:users:rx {site.root}`" in str(caught.value.hint)
    words("build", neutral(site, caught.value.message))
    assert stat.S_IMODE(site.root.stat().st_mode) == 0o2770
    set_acl(site.root, (4, 7, 2**32 - 1), (8, 5, grp.getgrnam("users").gr_gid))
    assert shared.make(site.root / "locks").is_dir()
    assert not site.root.stat().st_mode & 0o007


# Links


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait long for the holder of a lock that is not a claim."""
    monkeypatch.setattr(locks, "NONSENSE_S", 0.1)
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
KINDS = ("dangling link", "FIFO")


def planted(site: Site, what: str, kind: str) -> Path:
    """Something of another user at this path; what it would harm is Alice's."""
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


def test_an_admin_takes_over_the_lock_that_another_admin_left(site: Site) -> None:
    site.built_by(site.alice, "create")
    claim = json.dumps({**make_claim({}), "user": "alice", "pid": 2**22, "host": "n1"})
    lock = site.root / LINKS["a lock"]
    site.alice.sh('printf %s "$2" >"$1"', str(lock), claim)
    assert "kind" not in site.build(site.bob)
    assert list(lock.parent.iterdir()) == []


def test_nobody_else_can_plant_a_link_where_the_scheduler_writes_the_output_of_jobs(site: Site, words: Words) -> None:
    program = "store.make_jobs(); print(store.jobs)\n"
    done = site.python(site.alice, program)
    jobs = Path(done.stdout.strip())
    assert jobs == site.root / "jobs" / site.alice.name
    with pytest.raises(AssertionError, match=r"[Pp]ermission"):
        site.mallory.sh('ln -s "$2" "$1/provision-x-42.out"', str(jobs), str(site.precious))
    with pytest.raises(AssertionError, match=r"[Pp]ermission|not permitted"):
        site.mallory.sh('mv "$1" "$1.old"', str(jobs))
    site.alice.sh('mkdir -m 777 "$1"', str(jobs.parent / site.bob.name))
    done = site.python(site.bob, program)
    refused = [line for line in done.stderr.splitlines() if f"`{site.bob.name}`" in line][-1]
    words("job", neutral(site, refused))
