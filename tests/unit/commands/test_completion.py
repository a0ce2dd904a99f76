"""Completion in real shells: what Tab offers in bash, zsh and fish, and what it costs."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from parts.cli import call
from parts.loops import for_each
from provision.commands import VERBS
from provision.commands.completion import LEAVES, WRITERS
from provision.commands.shared.names import names_of
from provision.machine.configuration import shipped
from provision.machine.configuration.search_path import known

Captured = pytest.CaptureFixture[str]
VERB_NAMES = {verb for verb, _ in VERBS}
ENVIRONMENT = "native/tensorflow/2.21.0-0123456789"
# What is typed before Tab, some of what is offered, and some of what is not.
CASES: list[tuple[str, set[str], set[str]]] = [
    ("", {*VERB_NAMES}, {"horovod", "--site"}),
    ("bu", {"build"}, {"lock"}),
    ("job ", {"build", "follow", "horovod", "lint"}, {"doctor", "--nodes"}),
    ("job --site nyu-torch ho", {"horovod"}, {"build"}),
    ("job build --", {"--site", "--profile", "--json"}, {"--nodes", "--submit"}),
    ("job horovod --n", {"--nodes", "--no-gpu"}, {"--site"}),
    ("job single --n", {"--no-gpu"}, {"--nodes"}),
    ("job single --runtime ", {"venv", "modules", "container"}, {"--site"}),
    ("list --site ", set(known("sites")), {"native"}),
    ("list --site ny", {"nyu-greene", "nyu-torch"}, {"local"}),
    ("plan --site nyu-torch --arch ", {"h200", "l40s", "cpu"}, {"native"}),
    ("plan --arch ", {"native"}, {"h200"}),
    ("build --stack tensorflow-2.21.0-g", {"tensorflow-2.21.0-gpu"}, {"tensorflow-2.21.0"}),
    ("site show ", set(known("sites")), {"native"}),
    ("show ", {ENVIRONMENT}, {"build"}),
    ("activate native/", {ENVIRONMENT}, set()),
    ("completion ", {"bash", "zsh", "fish"}, {"build"}),
]


@pytest.fixture
def tool(tmp_path: Path) -> Path:
    """A folder with an executable `provision` and the three scripts; below the root there is one environment."""
    (Path(os.environ["PROVISION_ROOT"]) / "envs" / ENVIRONMENT).mkdir(parents=True)
    folder = tmp_path / "bin"
    folder.mkdir()
    here = Path(shipped.PACKAGE).parent
    (folder / "provision").write_text(
        f'#!/bin/sh\n[ "$1" = __complete ] || {{ echo "GOT<$*>"; exit; }}\n'
        f'PYTHONPATH={here} exec {sys.executable} -m provision "$@"\n'
    )
    (folder / "provision").chmod(0o755)
    for shell, write in WRITERS.items():
        (folder / shell).write_text(write())
    return folder


def environ(tool: Path) -> dict[str, str]:
    """The environment of a shell."""
    home = {"HOME": str(tool), "XDG_CONFIG_HOME": str(tool / "config"), "TERM": "dumb", "LC_ALL": "C.UTF-8"}
    return {**os.environ, **home, "PATH": f"{tool}:{os.environ['PATH']}"}


def need(shell: str) -> str:
    """The path of a shell, or the test is skipped."""
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"{shell} is not installed")
    return path


def bash_offers(tool: Path, typed: str) -> set[str]:
    """What bash's completion function offers; readline makes words of `--site=x` as it does."""
    words = typed.replace("=", " = ").split(" ")
    script = (
        'source "$1"; shift; COMP_WORDS=(provision "$@"); COMP_CWORD=$#; _provision; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    argv = [need("bash"), "--norc", "-c", script, "bash", str(tool / "bash"), *words]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, env=environ(tool))
    assert done.stderr == ""
    return set(done.stdout.split())


def fish_offers(tool: Path, typed: str) -> set[str]:
    """What fish offers, without the descriptions."""
    script = f"source {tool}/fish; complete -C 'provision {typed}'"
    argv = [need("fish"), "--no-config", "-c", script]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, env=environ(tool))
    assert done.stderr == ""
    return {line.split("\t")[0] for line in done.stdout.splitlines()}


@pytest.mark.parametrize(("typed", "offered", "others"), CASES, ids=[typed or "nothing" for typed, _, _ in CASES])
@pytest.mark.parametrize("offers", [bash_offers, fish_offers], ids=["bash", "fish"])
def test_a_shell_offers_what_can_follow(
    offers: Callable[[Path, str], set[str]], typed: str, offered: set[str], others: set[str], tool: Path
) -> None:
    found = offers(tool, typed)
    assert offered <= found
    assert not others & found


def test_bash_and_fish_offer_files_where_a_file_is_meant(tool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tool / "my job.sh").touch()
    monkeypatch.chdir(tool)
    assert {"my", "job.sh"} <= bash_offers(tool, "job lint m")
    assert any("my" in word for word in fish_offers(tool, "job lint m"))
    assert {"my", "job.sh"} <= bash_offers(tool, "job single --script m")


def type_into(shell: list[str], setup: str, env: dict[str, str]) -> list[list[str]]:
    """The words that the stand-in gets in an interactive shell for each line of keys."""
    mine, its = pty.openpty()
    child = subprocess.Popen(shell, stdin=its, stdout=its, stderr=its, env=env, start_new_session=True)
    os.close(its)
    got = []
    try:
        for keys, until in ((f"{setup}; echo REA''DY\n", "READY\r"), *((f"{keys}\n", "GOT<") for keys, _ in TYPED)):
            os.write(mine, keys.encode())
            seen, ends = "", time.monotonic() + 30
            while until not in seen or (until == "GOT<" and ">" not in seen.rpartition(until)[2]):
                assert time.monotonic() < ends, seen
                if select.select([mine], [], [], 0.2)[0]:
                    seen += os.read(mine, 4096).decode(errors="replace")
            got.append(seen.rpartition("GOT<")[2].partition(">")[0].split())
    finally:
        child.kill()
        child.wait()
        os.close(mine)
    return got[1:]


TYPED = [
    ("provision bui\t", "build"),
    ("provision job hor\t--ran\t4", "job horovod --ranks-per-node 4"),
    ("provision list --site nyu-t\t", "list --site nyu-torch"),
    ("provision list --site=nyu-t\t", "list --site=nyu-torch"),
    ("provision plan --site nyu-torch --arch l\t", "plan --site nyu-torch --arch l40s"),
    ("provision show nat\t", f"show {ENVIRONMENT}"),
    ("provision job single --runtime cont\t", "job single --runtime container"),
]


def test_zsh_completes_at_the_prompt(tool: Path) -> None:
    setup = f"PS1=; autoload -Uz compinit; compinit -u -D; source {tool}/zsh"
    found = type_into([need("zsh"), "-f", "-i"], setup, {**environ(tool), "TERM": "xterm"})
    assert found == [got.split() for _, got in TYPED]


def test_bash_completes_at_the_prompt(tool: Path) -> None:
    found = type_into([need("bash"), "--norc", "--noprofile", "-i"], f"PS1=; source {tool}/bash", environ(tool))
    assert found == [got.split() for _, got in TYPED]


def test_shellcheck_finds_no_fault_in_the_script_of_bash(tool: Path) -> None:
    argv = [shutil.which("shellcheck", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}") or "shellcheck"]
    subprocess.run([*argv, "-s", "bash", str(tool / "bash")], check=True)


@pytest.mark.parametrize("shell", WRITERS)
def test_the_verb_prints_the_script_with_every_option(shell: str, capsys: Captured) -> None:
    assert call("completion", shell) == 0
    out = capsys.readouterr().out
    for leaf in LEAVES:
        assert leaf.words[-1] in out
        for option in leaf.options:
            assert all(name.lstrip("-") in out for name in option.names)


# The names


@for_each("site", known("sites"))
def test_the_quick_reading_of_a_profile_finds_the_archs_that_it_has(site: str) -> None:
    data, _ = shipped.load_profile(site)
    assert names_of("archs", site) == list(data["archs"])


def test_a_name_that_a_shell_would_expand_is_not_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sites").mkdir()
    for name in ("$(touch x)", "a b", "`x`", "fine-1.0"):
        (tmp_path / "sites" / f"{name}.toml").touch()
    monkeypatch.setenv("PROVISION_CONFIG", str(tmp_path))
    assert set(known("sites")) - set(names_of("sites")) == {"$(touch x)", "a b", "`x`"}


@pytest.mark.parametrize(
    "words", [(), ("nosuch",), ("archs", "nosuch"), ("archs", "/x.toml"), ("environments", "nosuch")]
)
def test_completion_of_what_is_not_there_prints_nothing(words: tuple[str, ...], capsys: Captured) -> None:
    assert call("__complete", *words) == 0
    assert capsys.readouterr() == ("", "")
