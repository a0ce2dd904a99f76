"""`show --diff`, and the command of the site after a publication."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shlex
from pathlib import Path

import pytest

from golden_files import Words
from parts.cli import call, envelope
from parts.modules import LMOD, bash
from parts.paths import REPOSITORY
from parts.published import SITE, put_proved, put_unproved
from parts.records import DESCRIPTION, put_published, store_here
from provision.commands.shared.parsers import parse
from provision.commands.shared.target import Target, read_target
from provision.machine.probes.look_around import cpu
from provision.machine.root.store import Store
from provision.model.layout import EnvironmentId

OLD = EnvironmentId("knl", "tensorflow", "2.20.0", "0000000000")
NEW = EnvironmentId("knl", "tensorflow", "2.21.0", "1111111111")
HALF = EnvironmentId("knl", "tensorflow", "2.22.0", "2222222222")
UPDATE = Path("/usr/share/lmod/lmod/libexec/update_lmod_system_cache_files")
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """The root of site `local`, with two proved environments that differ in one package."""
    made = store_here()
    for env, version in ((OLD, "3.14.0"), (NEW, "3.15.1")):
        put_proved(made, env)
        info = Path(made.layout.prefix(env)) / SITE / f"keras-{version}.dist-info"
        info.parent.chmod(0o755)
        info.mkdir()
        (info / "INSTALLER").write_text("uv")
    return made


def profile_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    """Let `local` be a profile with this hook."""
    text = (REPOSITORY / "sites" / "local.toml").read_text()
    (tmp_path / "conf/sites").mkdir(parents=True)
    (tmp_path / "conf/sites/local.toml").write_text(f"{text}\n[hooks]\nafter_publish = '''{command}'''\n")
    monkeypatch.setenv("PROVISION_CONFIG", str(tmp_path / "conf"))


def target_of_hint(text: str, ending: str) -> Target:
    """What the command of the hint in this output builds, read as `provision plan` reads it."""
    (command,) = re.findall(rf"^hint: `(.*)`{re.escape(ending)} completes it$", text, re.MULTILINE)
    tool, verb, *words = shlex.split(command)
    assert (tool, verb) == ("provision", "build")
    return read_target(parse("plan", words))


@pytest.mark.parametrize("words", ["show", "activate", "verify", "venv create own --on", "publish"])
def test_the_hint_of_an_unfinished_environment_is_a_build_that_works(
    words: str, store: Store, capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    here = dataclasses.replace(HALF, arch=cpu().target)  # the arch of `local` is called `native`
    for env, where in ((here, ""), (HALF, " on a machine with the CPU `knl`")):
        records = put_unproved(store, env) / ".provision"
        (records / "plan.json").write_text(json.dumps({"spack": "0123"}))
        assert call(*words.split(), str(env)) == (words != "show")
        target = target_of_hint("".join(capsys.readouterr()), where)
        assert (target.site.name, target.arch.name) == ("local", "native")
        assert (target.stack.name, target.stack.backend) == (DESCRIPTION.stack, "spack")
        (records / "description.json").unlink()  # it was ended in its first step
        (records / "plan.json").unlink()
        call(*words.split(), str(env))
        command = "provision build --site local --arch native --stack STACK"
        assert f"hint: `{command}`{where} completes it" in "".join(capsys.readouterr())


@pytest.mark.parametrize("words", ["show", "publish"])
def test_the_hint_of_an_unfinished_environment_names_the_profile_and_its_arch(
    words: str, store: Store, capsys: Captured, tmp_path: Path
) -> None:
    put_unproved(store, HALF)
    profile = tmp_path / "my sites" / "mine.toml"
    profile.parent.mkdir()
    text = (REPOSITORY / "sites" / "local.toml").read_text().replace('name = "local"', 'name = "mine"')
    for arch, named in (("knl", True), ("skylake", False)):  # the profile has no longer the arch of the environment
        profile.write_text(text.replace("[archs.native]", f"[archs.{arch}]").replace('"native"', '"mic_knl"'))
        call(*words.split(), "--site", str(profile), str(HALF))
        output = "".join(capsys.readouterr())
        assert ("--arch" in output) == named
        assert target_of_hint(output, "").site.origin == str(profile)


@pytest.mark.usefixtures("store")
def test_two_environments_are_compared_by_packages_identity_and_proof(capsys: Captured) -> None:
    assert call("show", "--diff", str(OLD), str(NEW)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [f"- {OLD}", f"+ {NEW}"]
    assert lines[2].split() == ["package", "keras", "3.14.0", "->", "3.15.1"]
    assert call("show", "--diff", str(OLD), str(NEW), "--json") == 0
    result = envelope(capsys)["result"]
    assert (result["before"], result["after"]) == (str(OLD), str(NEW))
    assert {"group": "package", "name": "keras", "before": "3.14.0", "after": "3.15.1"} in result["differences"]
    assert call("show", "--diff", str(NEW), str(NEW)) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "no difference"


def test_a_shown_environment_names_and_counts_its_patches(capsys: Captured) -> None:
    names = [f"{number:04}-the-{number}th-fault-of-horovod" for number in range(1, 22)]
    hashes = {name: f"{number:012x}" for number, name in enumerate(names)}
    identity = {"python": "3.11.7", "patches": " ".join(f"{name}.patch:{hashes[name]}" for name in names)}
    record = put_published(store_here(), identity=identity)
    assert call("show", record.environment) == 0
    out = capsys.readouterr().out
    assert "  patches            21, " in out and all(name in out for name in names)
    assert not any(text in out for text in hashes.values())
    assert max(len(line) for line in out.splitlines() if "fault-of-horovod" in line) <= 120
    assert call("show", record.environment, "--json") == 0
    assert envelope(capsys)["result"]["identity"] == identity


def test_without_a_record_there_is_nothing_to_compare(store: Store, capsys: Captured) -> None:
    put_unproved(store, HALF)
    assert call("show", "--diff", str(OLD), str(HALF), "--json") == 1
    assert envelope(capsys)["error"]["kind"] == "unproved"
    assert call("show", "--diff", "nosuch", str(OLD), "--json") == 2


@pytest.mark.usefixtures("store")
def test_the_command_of_the_site_runs_after_each_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = tmp_path / "seen"
    command = f'echo "$PROVISION_ACTION $PROVISION_ARCH $PROVISION_ENVIRONMENT" >> {seen}; test -d "$PROVISION_MODULES_FOLDER"'
    profile_with(tmp_path, monkeypatch, command)
    for words in (
        ("publish", str(OLD), "--dry-run"),
        ("publish", str(OLD)),
        ("publish", str(OLD)),
        ("publish", str(NEW)),
    ):
        assert call(*words) == 0
    assert call("rollback", "--dry-run") == 0
    assert call("rollback") == 0
    assert call("unpublish", str(OLD)) == 0
    assert seen.read_text().splitlines() == [
        f"publish knl {OLD}",
        f"publish knl {NEW}",
        "rollback knl ",
        f"unpublish knl {OLD}",
    ]


def test_a_command_of_the_site_that_fails_is_a_warning(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured, words: Words
) -> None:
    profile_with(tmp_path, monkeypatch, "echo no cache here >&2; exit 3")
    assert call("publish", str(OLD)) == 0
    err = capsys.readouterr().err
    assert "`hooks.after_publish` of" in err
    assert "code 3: no cache here" in err
    words("publish", "\n".join(line for line in err.splitlines() if "hooks" in line))
    assert store.pointers() == {"knl/tensorflow/2.20.0": str(OLD)}


@pytest.mark.skipif(LMOD is None or not os.access(UPDATE, os.X_OK), reason="Lmod is missing")
def test_lmods_cache_is_made_again_by_the_command_of_the_how_to_page(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert LMOD is not None
    cache = tmp_path / "cache"
    cache.mkdir()
    profile_with(tmp_path, monkeypatch, f"{UPDATE} -d {cache} -t {cache}/timestamp $PROVISION_MODULES_FOLDER")
    config = tmp_path / "lmodrc.lua"
    config.write_text(f'scDescriptT = {{ {{ dir = "{cache}", timestamp = "{cache}/timestamp" }} }}\n')

    def spider() -> str:
        # Users on other nodes trust the cache for a day: they see what it has, and nothing else.
        done = bash(
            "module -t spider tensorflow 2>&1",
            LMOD,
            f"{store.layout.modules('knl')}/tcl",
            environ={"LMOD_RC": str(config), "LMOD_ANCIENT_TIME": "86400", "LMOD_SHORT_TIME": "86400"},
        )
        return done.stdout

    assert call("publish", str(OLD)) == 0
    assert "tensorflow/2.20.0" in spider()
    assert any("2.20.0" in path.read_text(errors="replace") for path in cache.glob("spiderT*.lua"))
    assert call("publish", str(NEW)) == 0
    assert "tensorflow/2.21.0" in spider()
    assert any("2.21.0" in path.read_text(errors="replace") for path in cache.glob("spiderT*.lua"))


def test_list_and_show_name_the_one_who_builds(store: Store, capsys: Captured) -> None:
    put_unproved(store, HALF)
    with store.held(Path(store.layout.lock(HALF)), {"does": "builds"}):
        capsys.readouterr()
        assert call("list", "--state", "building") == 0
        (line,) = capsys.readouterr().out.splitlines()[1:]
        assert f", process {os.getpid()}, since 20" in line
        assert call("show", str(HALF)) == 0
        out = capsys.readouterr().out
        assert "state        being built by " in out
        assert "hint" not in out
    assert call("show", str(HALF)) == 0
    assert "state        unfinished; done: create, inspect, install, proof" in capsys.readouterr().out
