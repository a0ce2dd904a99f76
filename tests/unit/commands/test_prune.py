"""remove, prune and pin: a plan first, and then only what nobody needs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from golden_files import Words
from parts.cli import call, envelope
from parts.json_page import faults
from parts.modules import LMOD, bash, needed
from parts.provision import REPOSITORY
from parts.published import put_proved, put_unproved
from provision.errors import CommandError
from provision.machine.root import removing
from provision.machine.root.publishing import Publisher
from provision.machine.root.removing import Remover
from provision.machine.root.store import Store
from provision.machine.sharing import claims
from provision.model.layout import EnvironmentId, Layout
from provision.schedulers.status import RunningJob

OLD = EnvironmentId("knl", "tensorflow", "2.15.1", "0000000000")
NEW = EnvironmentId("knl", "tensorflow", "2.15.1", "1111111111")
HALF = EnvironmentId("knl", "tensorflow", "2.15.1", "2222222222")
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """The root of site `local`: one published environment, an older one, an unfinished one, a wheel, and leftovers."""
    monkeypatch.setenv("PROVISION_ROOT", str(tmp_path))
    made = Store(Layout(PurePosixPath(tmp_path)))
    for env in (OLD, NEW):
        put_proved(made, env)
        Publisher(made).publish(env)
    put_unproved(made, HALF)
    for path in ("wheels/unused/wheel.json", "build/knl/tensorflow-1-gone/x.o", "wheels/horovod-0.28.1-abc/wheel.json"):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text("x" * 10)
    return made


def grow_old(store: Store, env: EnvironmentId) -> None:
    """Let an environment be 100 days old."""
    then = time.time() - 100 * 86400
    for path in (Path(store.layout.prefix(env)), Path(store.layout.records_folder(env)) / "record.json"):
        if path.exists():
            os.utime(path, (then, then))


def pruned(capsys: Captured, *words: str) -> tuple[list[str], list[str], dict[str, Any]]:
    """The environments and the leftovers that go, and the whole result."""
    capsys.readouterr()
    assert call("prune", "--json", *words) == 0
    result = json.loads(capsys.readouterr().out)["result"]
    assert faults(result, "prune") == []
    going = [one["environment"].rpartition("-")[2] for one in result["environments"] if one["removes"]]
    return going, [one["kind"] for one in result["leftovers"]], result


def test_prune_shows_what_goes_and_removes_it_only_with_yes(store: Store, capsys: Captured) -> None:
    for env in (OLD, HALF):
        grow_old(store, env)
    assert pruned(capsys)[0] == ["2222222222"], "two that passed their proof are kept"
    going, kinds, result = pruned(capsys, "--keep", "0", "--generations", "0")
    assert (sorted(going), sorted(kinds)) == (["0000000000", "2222222222"], ["build", "generation", "wheel"])
    assert Path(store.layout.prefix(OLD)).exists()
    assert result["removed"] is False
    assert call("prune", "--keep", "0", "--generations", "0", "--yes") == 0
    assert "freed " in capsys.readouterr().out
    assert store.environments() == [NEW]
    assert store.pointers() == {"knl/tensorflow/2.15.1": str(NEW)}
    assert [path.name for path in (store.root / "wheels").iterdir()] == ["horovod-0.28.1-abc"], "NEW needs it"
    assert not list((store.root / "build").rglob("*.o"))
    assert pruned(capsys, "--keep", "0", "--generations", "0")[:2] == ([], [])


def test_what_users_load_is_refused_and_the_hint_works(store: Store, capsys: Captured, words: Words) -> None:
    assert call("remove", str(NEW), "--yes", "--json") == 2
    error = envelope(capsys)["error"]
    assert error["kind"] == "protected" and "tensorflow/2.15.1" in error["evidence"][0]
    words("remove", "\n".join([error["message"], *error["evidence"]]))
    command = error["hint"].split("`")[1].split()
    assert call(*command[1:]) == 0
    capsys.readouterr()
    assert call("remove", str(NEW), "--json") == 0
    result = envelope(capsys)["result"]
    assert faults(result, "remove") == []
    assert result["removed"] is False
    assert call("remove", str(NEW), "--yes") == 0
    assert NEW not in store.environments()


def test_a_pin_protects_until_it_is_taken_off(store: Store, capsys: Captured) -> None:
    grow_old(store, OLD)
    assert call("pin", str(OLD), "--reason", "the paper of group X", "--json") == 0
    assert faults(envelope(capsys)["result"], "pin") == []
    assert pruned(capsys, "--keep", "0")[0] == []
    assert call("remove", str(OLD), "--yes", "--json") == 2
    assert envelope(capsys)["error"]["evidence"][0].endswith(": the paper of group X")
    assert call("pin", str(OLD), "--off") == 0
    assert pruned(capsys, "--keep", "0")[0] == ["0000000000"]
    assert call("pin", str(OLD), "--reason", "a\nb", "--json") == 2


def test_what_a_process_of_this_machine_uses_stays(
    store: Store, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    grow_old(store, OLD)
    with subprocess.Popen(["sleep", "60"], cwd=store.layout.prefix(OLD)) as sleeping:
        try:
            assert pruned(capsys, "--keep", "0")[0] == []
            by_link = tmp_path / "by_link"
            by_link.symlink_to(store.root)
            monkeypatch.setenv("PROVISION_ROOT", str(by_link))
            assert pruned(capsys, "--keep", "0")[0] == [], "the kernel knows the path without links only"
            monkeypatch.setenv("PROVISION_ROOT", str(store.root))
        finally:
            sleeping.kill()
    assert pruned(capsys, "--keep", "0")[0] == ["0000000000"]


def test_a_job_that_started_before_the_modules_changed_keeps_what_it_may_have_loaded(
    store: Store, words: Words
) -> None:
    pointer = Path(store.layout.modules("knl"))
    then = time.time() - 1000
    os.utime(pointer, (then, then), follow_symlinks=False)
    old, young = (RunningJob(job="1", user="a", seconds=2000), RunningJob(job="2", user="b", seconds=500))
    (resident,) = Remover(store, (old, young)).residents([OLD])
    (reason,) = resident.used_by
    assert "job 1 of a" in reason
    words("prune", reason)
    assert Remover(store, (young,)).residents([OLD])[0].used_by == ()
    assert Remover(store, (old,)).residents([HALF])[0].used_by == (), "no user could ever load it"


def test_what_is_published_between_the_plan_and_the_removal_stays(store: Store, words: Words) -> None:
    remover = Remover(store)
    (resident,) = remover.residents([OLD])
    assert resident.protection is None
    Publisher(store).publish(OLD)
    reason = remover.remove(OLD)
    assert reason is not None and "tensorflow/2.15.1" in reason
    words("remove", reason)
    assert Path(store.layout.prefix(OLD)).exists()


def test_what_is_being_built_stays(store: Store) -> None:
    with store.held(Path(store.layout.lock(OLD)), {"does": "builds it"}):
        assert Remover(store).residents([OLD])[0].protection is not None
        assert "is being built by" in (Remover(store).remove(OLD) or "")
    assert Remover(store).remove(OLD) is None


def test_the_lock_of_a_dead_process_goes_and_that_of_a_live_one_stays(store: Store, capsys: Captured) -> None:
    dead, live = store.root / "locks" / "publish-knl.lock", Path(store.layout.lock(OLD))
    claim = claims.make_claim({}) | {"started": "1"}
    with store.held(live, {}):
        dead.mkdir()
        (dead / str(claim["token"])).write_text(json.dumps(claim))
        assert "lock" in pruned(capsys, "--yes")[1]
        assert list(dead.parent.iterdir()) == [live]
    assert not any(dead.parent.iterdir())


def test_an_interrupted_removal_is_finished_by_the_next_prune(
    store: Store, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    grow_old(store, OLD)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(removing.Store, "delete", killed)
    assert call("prune", "--keep", "0", "--yes") == 130
    monkeypatch.undo()
    monkeypatch.setenv("PROVISION_ROOT", str(store.root))
    assert OLD not in store.environments()
    assert store.pointers() == {"knl/tensorflow/2.15.1": str(NEW)}
    assert "trash" in pruned(capsys)[1]
    assert call("prune", "--yes") == 0
    assert not list((store.root / "envs").glob("*/*/.*"))


def test_a_scheduler_that_does_not_answer_stops_prune(
    store: Store, capsys: Captured, monkeypatch: pytest.MonkeyPatch, words: Words
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    from provision.machine.probes import ask_scheduler

    with pytest.raises(CommandError) as caught:
        ask_scheduler.running_jobs("slurm")
    assert "`squeue` works" in str(caught.value.hint)
    words("prune", "\n".join(caught.value.to_lines()))


def make_newer(path: Path) -> None:
    """Let a file be one of the next version, which this one cannot read."""
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema": 2}))


@pytest.mark.parametrize("name", ["record.json", "description.json", "manifest.json"])
def test_an_environment_of_a_newer_version_stays_and_so_do_all_wheels(
    name: str, store: Store, capsys: Captured, words: Words
) -> None:
    for env in (OLD, HALF):
        grow_old(store, env)
    make_newer(Path(store.layout.records_folder(OLD)) / name)
    going, kinds, _ = pruned(capsys, "--keep", "0", "--older", "0", "--yes")
    assert (going, kinds) == (["2222222222"], ["build"])
    assert call("remove", str(OLD), "--yes", "--json") == 2
    error = envelope(capsys)["error"]
    assert error["kind"] == "protected" and name in error["evidence"][0]
    words("remove", error["evidence"][0])
    assert "newer" in (Remover(store).remove(OLD) or ""), "a newer one may write it after the plan"
    assert OLD in store.environments()


def test_an_unfinished_environment_of_a_newer_version_stays(store: Store, capsys: Captured) -> None:
    make_newer(Path(store.layout.records_folder(HALF)) / "receipts/create.json")
    assert pruned(capsys, "--keep", "0", "--older", "0")[0] == ["0000000000"]


def test_an_arch_whose_modules_a_newer_version_wrote_keeps_everything(store: Store, capsys: Captured) -> None:
    make_newer(store.generations.folder("knl", 1) / "generation.json")
    rules = ("--keep", "0", "--older", "0", "--generations", "0")
    going, kinds, _ = pruned(capsys, *rules)
    assert len(going) == 2 and "generation" not in kinds
    make_newer(store.generations.folder("knl", 2) / "generation.json")
    assert pruned(capsys, *rules)[:2] == ([], ["build"])


@pytest.mark.parametrize(
    "folder", ["verified/knl", "pins/knl", "upgrades/x", "upgrades/x/after", "modules/.generations/knl"]
)
def test_what_a_killed_run_was_writing_goes(folder: str, store: Store, capsys: Captured) -> None:
    path = store.root / folder / ".a.json.123.a1b2c3"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("half")
    assert "trash" in pruned(capsys, "--yes")[1]
    assert not path.exists()


# By last load


def log_line(env: EnvironmentId, days: float) -> str:
    """A line of syslog about a load so many days, and a second, ago: rounded up, the time would be one day less."""
    return f"Nov  1 10:00:00 n1 provision[7]: environment={env} time={time.time() - days * 86400 - 1:.1f}\n"


def test_only_what_nobody_loaded_for_so_long_goes(store: Store, tmp_path: Path, capsys: Captured, words: Words) -> None:
    for env in (OLD, HALF):
        grow_old(store, env)
    log, rules = tmp_path / "loads.log", ("--keep", "0", "--unused-for", "90", "--usage", str(tmp_path / "loads.log"))
    log.write_text("module=gcc/12 time=1\n" + log_line(OLD, 200) + log_line(OLD, 80) + "environment=x time=1\n")
    going, _, result = pruned(capsys, *rules)
    assert going == ["2222222222"], "the log knows 200 days, and no user loaded it in them"
    why = {one["environment"].rpartition("-")[2]: one["why"] for one in result["environments"]}
    assert "80 days" in why["0000000000"] and "200 days" in why["2222222222"]
    words("prune", why["0000000000"])
    words("prune", why["2222222222"])
    log.write_text(log_line(OLD, 95))
    assert sorted(pruned(capsys, *rules)[0]) == ["0000000000", "2222222222"]
    log.write_text(log_line(NEW, 10))
    assert pruned(capsys, *rules)[0] == [], "the log knows 10 days only"
    log.write_text(log_line(OLD, 200) + log_line(OLD, -1))
    assert pruned(capsys, *rules)[0] == ["2222222222"], "a clock is wrong"


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [
        ("environment=a/b time=1\nenvironment=a/b/c\n\0\xff", ("--unused-for", "9"), "no line of"),
        ("", ("--unused-for", "9"), "no line of"),
        ("", (), "`--usage` needs `--unused-for DAYS`"),
    ],
)
def test_a_log_that_is_not_one_removes_nothing(
    text: str, words: tuple[str, ...], message: str, store: Store, tmp_path: Path, capsys: Captured
) -> None:
    (tmp_path / "log").write_text(text, encoding="latin-1")
    assert call("prune", "--yes", "--json", "--usage", str(tmp_path / "log"), *words) == 2
    assert message in envelope(capsys)["error"]["message"]
    assert HALF in store.environments()


def test_the_hook_of_the_docs_writes_the_lines_and_waits_for_nothing(
    store: Store, tmp_path: Path, capsys: Captured
) -> None:
    """Real: Lmod and the text of the page. A stand-in: `logger`, which takes a second here."""
    page = (REPOSITORY / "docs" / "howto" / "lifecycle.md").read_text()
    (lua,) = re.findall(r"```lua\n(.*?)```", page, re.DOTALL)
    package, log = tmp_path / "package", tmp_path / "loads.log"
    package.mkdir()
    (package / "SitePackage.lua").write_text(lua.replace("/site/provision/", f"{store.root}/"))
    (package / "logger").write_text(f'#!/bin/sh\nsleep 1\necho "$@" >>{log}\n')
    (package / "logger").chmod(0o755)
    modules = Path(store.layout.modules("knl")) / "lua"
    script = f"export LMOD_PACKAGE_PATH={package} PATH={package}:$PATH\nmodule load tensorflow/2.15.1\n"
    done = bash(f"{script}[ -e {log} ] || echo later; sleep 1.5", needed(LMOD), modules)
    assert "later" in done.stdout, done.stderr
    assert f"environment={NEW} time=" in log.read_text()
    assert pruned(capsys, "--usage", str(log), "--unused-for", "1")[0] == []
