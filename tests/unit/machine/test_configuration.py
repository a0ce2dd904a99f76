"""A configuration that other users may write is refused: with real files, real owners and the tool run by a real user."""

from __future__ import annotations

import grp
import json
import os
import shlex
from pathlib import Path
from typing import Any

import pytest

from golden_files import Words
from parts.cli import call, envelope, run, time_limit
from parts.users import ATTACKER, VICTIM, Users
from provision.errors import EXIT_USAGE, ConfigError
from provision.machine.configuration import search_path, shipped
from provision.machine.configuration.permissions import read_configuration
from provision.machine.configuration.search_path import shipped_root
from provision.machine.network.lock_compiler import compile_locks, inputs_of_locks
from provision.model.facts import Interpreter

GENERIC = 'name = "snowy"\nroot = "/x"\n'
USERS = grp.getgrnam("users").gr_gid


def seen(users: Users, **environ: str) -> dict[str, Any]:
    """What `site show snowy --json` prints for the victim, whose configuration is `config/`."""
    done = users.tool("site", "show", "snowy", "--json", PROVISION_CONFIG=str(users.folder / "config"), **environ)
    body: dict[str, Any] = json.loads(done.stdout)
    return body


def make_config(users: Users, owner: int = VICTIM) -> Path:
    """A configuration folder with the profile `snowy` that only its owner may write."""
    users.make_folder("config", owner)
    users.make_folder("config/sites", owner)
    return users.make_file("config/sites/snowy.toml", GENERIC, owner)


@pytest.mark.parametrize("owner", [VICTIM, 0, ATTACKER])
def test_a_configuration_of_one_owner_is_used_whoever_he_is(owner: int, users: Users) -> None:
    """The victim named the folder of another user: he builds with that user's profile on purpose."""
    profile = make_config(users, owner)
    assert seen(users)["result"]["path"] == str(profile)


@pytest.mark.parametrize(
    ("name", "mode", "who", "bits"),
    [
        ("config/sites/snowy.toml", 0o646, "every user", "o-w"),
        ("config/sites/snowy.toml", 0o664, "group `users`", "g-w"),
        ("config/sites/snowy.toml", 0o666, "every user", "go-w"),
        ("config/sites", 0o757, "every user", "o-w"),
        ("config/sites", 0o1777, "every user", "go-w"),
        ("config", 0o775, "group `users`", "g-w"),
        (".", 0o775, "group `users`", "g-w"),
    ],
)
def test_a_file_or_folder_that_others_may_write_is_refused_with_a_fix_that_works(
    name: str, mode: int, who: str, bits: str, users: Users, words: Words
) -> None:
    make_config(users)
    path = Path(os.path.normpath(users.folder / name))
    users.own(path, 0 if name == "." else VICTIM, mode, USERS)
    error = seen(users)["error"]
    assert error["kind"] == "untrusted"
    assert [part for part in (f"`{users.folder}/config/sites/snowy.toml`", who) if part not in error["message"]] == []
    words("site", error["message"].replace(str(users.folder), "FOLDER"))
    assert error["evidence"][0].endswith(f" users {path}")
    command = error["hint"].removeprefix("ask `root` to run ").strip("`")
    assert command == f"chmod {bits} {path}"
    done = users.run(0 if name == "." else VICTIM, *shlex.split(command))
    assert done.returncode == 0, done.stderr
    assert seen(users)["ok"]


def test_the_fix_of_a_checkout_with_the_umask_002_is_one_command(users: Users) -> None:
    profile = make_config(users)
    entries = [profile.parents[1], profile.parent, profile]
    for path in entries:
        users.own(path, VICTIM, 0o775, USERS)
    hint = seen(users)["error"]["hint"]
    assert hint == f"`chmod g-w {' '.join(map(str, entries))}`"
    assert users.run(VICTIM, *shlex.split(hint.strip("`"))).returncode == 0
    assert seen(users)["ok"]


@pytest.mark.parametrize("name", ["config/sites/snowy.toml", "config/sites", "config"])
def test_what_another_user_owns_in_the_chosen_folder_is_refused_with_a_copy_as_the_fix(name: str, users: Users) -> None:
    profile = make_config(users)
    users.own(users.folder / name, ATTACKER, 0o755)
    if name == "config":  # then the folder's owner is believed, but not what the victim has in it
        users.own(users.folder / "config/sites", 54323, 0o755)
    error = seen(users)["error"]
    assert error["kind"] == "untrusted"
    assert "owns" in error["message"]
    mine = users.home / ".config/provision/sites/snowy.toml"
    assert error["hint"].endswith(f"`install -D -m 644 {profile} {mine}`")
    assert users.run(VICTIM, *shlex.split(error["hint"].split("`")[1])).returncode == 0
    done = users.tool("site", "show", "snowy", "--json")
    assert json.loads(done.stdout)["result"]["path"] == str(mine)


def test_a_named_profile_is_refused_only_if_others_than_its_owner_may_replace_it(users: Users, words: Words) -> None:
    users.make_folder("theirs", ATTACKER)
    path = users.make_file("theirs/snowy.toml", GENERIC, ATTACKER)
    assert users.tool("site", "show", str(path)).returncode == 0
    users.own(path.parent, ATTACKER, 0o777)
    done = users.tool("site", "show", str(path))
    assert done.returncode == 2
    assert f"`{path.parent}`" in done.stderr
    assert f"hint: ask `{ATTACKER}` to run `chmod go-w {path.parent}`" in done.stderr
    words("site", done.stderr.replace(str(users.folder), "FOLDER"))


def test_a_profile_or_a_link_directly_in_a_sticky_folder_is_refused(users: Users) -> None:
    sticky = users.make_folder("tmp", 0, 0o1777)
    users.make_file("tmp/snowy.toml", GENERIC, ATTACKER)
    users.make_folder("tmp/own", ATTACKER)
    target = users.make_file("tmp/own/snowy.toml", GENERIC, ATTACKER)
    users.run(ATTACKER, "ln", "-s", str(target), str(sticky / "link.toml"))
    for name in ("snowy.toml", "link.toml", "own/../snowy.toml"):
        done = users.tool("site", "show", f"{sticky}/{name}")
        assert (done.returncode, "may write the folder" in done.stderr) == (2, True), name
        assert f"`{sticky}`: every user" in done.stderr and "chmod" not in done.stderr, "it has to stay so"
    assert users.tool("site", "show", str(target)).returncode == 0


def test_a_link_on_the_way_is_followed_and_both_ways_are_judged(users: Users, words: Words) -> None:
    profile = make_config(users)
    users.make_folder("open", VICTIM, 0o777)
    (users.folder / "link").symlink_to(users.folder / "open" / "config")
    os.lchown(users.folder / "link", VICTIM, VICTIM)
    (users.folder / "open" / "config").symlink_to("../config")
    os.lchown(users.folder / "open" / "config", VICTIM, VICTIM)
    done = users.tool("site", "show", "snowy", PROVISION_CONFIG=str(users.folder / "link"))
    assert f"`{users.folder}/open`" in done.stderr
    words("site", done.stderr.replace(str(users.folder), "FOLDER"))
    users.own(users.folder / "open", VICTIM, 0o755)
    done = users.tool("site", "show", "snowy", PROVISION_CONFIG=str(users.folder / "link"))
    assert done.returncode == 0, done.stderr
    assert profile.is_file()


def test_the_group_that_the_profile_names_may_write_once_the_owner_has_given_it_the_folder(
    users: Users, words: Words
) -> None:
    """The key alone does not suffice: each member of the group could have written it."""
    profile = make_config(users)
    stack = users.make_folder("config/stacks", VICTIM, 0o2775, USERS)
    profile.write_text(GENERIC + '[files]\ngroup = "users"\n')
    users.own(profile, VICTIM, 0o664, USERS)
    error = seen(users)["error"]
    assert "group `users`" in error["message"]
    words("site", error["message"].replace(str(users.folder), "FOLDER"))
    users.own(profile.parent, VICTIM, 0o2775, USERS)
    assert seen(users)["ok"]
    # The stacks of that folder have no key of their own: the profiles beside them name the group.
    users.make_file("config/stacks/own.toml", 'name = "own"\n', VICTIM, 0o664, USERS)
    environ = {"PROVISION_CONFIG": str(users.folder / "config")}
    (line,) = json.loads(users.tool("stack", "list", "--json", **environ).stdout)["result"]["unreadable"]
    assert "faults in" in line
    profile.write_text(GENERIC)
    assert "group `users` may write" in seen(users)["error"]["message"]
    users.own(profile, VICTIM, 0o644)
    users.own(profile.parent, VICTIM, 0o755)
    (line,) = json.loads(users.tool("stack", "list", "--json", **environ).stdout)["result"]["unreadable"]
    assert "group `users`" in line and f"`{stack}`" in line
    words("stack", line.replace(str(users.folder), "FOLDER"))


# Every kind of file


USER_JOB = ("--site", "example-slurm", "--arch", "haswell", "--account", "x")


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("stacks/own.toml", ("plan", "--stack", "own")),
        ("requirements/tensorflow-2.21.0.in", ("plan", "--stack", "tensorflow-2.21.0")),
        ("jobs/horovod.sh.j2", ("job", "horovod", *USER_JOB)),
        ("jobs/user.sh.j2", ("job", "single", *USER_JOB)),
    ],
)
def test_each_kind_of_file_is_refused_if_others_may_write_it(
    name: str,
    command: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: Words,
) -> None:
    path = tmp_path / "config" / name
    path.parent.mkdir(parents=True)
    path.write_text("{{ cycler.__init__.__globals__.os.system('touch ran') }}\n")
    if name.endswith(".in"):
        (path.parent / "tensorflow-2.21.0-py311.txt").touch()
    path.chmod(0o666)
    monkeypatch.setenv("PROVISION_CONFIG", str(tmp_path / "config"))
    monkeypatch.setenv("EXAMPLE_SITE", "/site")
    monkeypatch.chdir(tmp_path)
    assert call(*command, "--json") == EXIT_USAGE
    error = envelope(capsys)["error"]
    assert error["kind"] == "untrusted"
    assert f"`{path}`" in error["message"]
    words(command[0], error["message"])
    assert not (tmp_path / "ran").exists()


def test_patches_locks_and_their_inputs_are_judged_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: Words
) -> None:
    for name in ("patches/horovod-9.9/0001-x.patch", "requirements/own.in", "requirements/own-py311.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x\n")
        path.chmod(0o666)
    monkeypatch.setenv("PROVISION_CONFIG", str(tmp_path))
    inputs, named = inputs_of_locks()
    assert inputs == [named["own"]] == [tmp_path / "requirements" / "own.in"]
    assert named["tensorflow-2.21.0"].parent == Path(shipped_root()) / "requirements"
    nowhere = Interpreter(executable="/nosuch/python", version="3.11.0", tag="cp311", own_venv=True)
    for load in (
        lambda: shipped.load_patches("9.9"),
        lambda: shipped.load_lock("own", "3.11"),
        lambda: compile_locks(nowhere, inputs, upgrade=False),
    ):
        with pytest.raises(ConfigError) as caught:
            load()
        assert caught.value.kind == "untrusted"
        words("build", caught.value.message)


def test_shipped_files_are_not_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who may write there may write the program."""
    file = tmp_path / "sites" / "x.toml"
    file.parent.mkdir()
    file.write_text("x\n")
    file.chmod(0o666)
    monkeypatch.setattr(search_path, "shipped_root", lambda: str(tmp_path))
    assert read_configuration(str(file), "sites/x.toml", str(tmp_path)) == "x\n"
    with pytest.raises(ConfigError) as caught:
        read_configuration(str(file), "sites/x.toml")
    assert caught.value.kind == "untrusted" and str(file) in caught.value.message


@pytest.mark.parametrize("kind", ["fifo", "folder", "large"])
def test_what_is_not_a_file_of_a_usual_size_is_refused_without_hanging(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "sites" / "snowy.toml"
    path.parent.mkdir()
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        with path.open("wb") as file:
            file.truncate(1 << 30)
    monkeypatch.setenv("PROVISION_CONFIG", str(tmp_path))
    for words in (
        ("plan", "--site", "snowy"),
        ("plan", "--site", str(path)),
        ("site", "list"),
        ("__complete", "archs", "snowy"),
    ):
        with time_limit(30):
            done = run(*words)
        assert "a bug" not in done.stderr
        if words[0] == "plan":
            assert done.returncode == 2
            assert f"`{path}` cannot be read" in done.stderr
