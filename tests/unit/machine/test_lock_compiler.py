"""Locks for old Pythons: which pip, pip-tools and options compile them. The programs are stand-ins."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from parts.cli import call
from parts.paths import REPOSITORY
from provision.machine.configuration import search_path
from provision.machine.configuration.shipped import load_lock
from provision.machine.network import fetching, lock_compiler
from provision.machine.programs.run import Result
from provision.model.facts import Interpreter


@pytest.mark.parametrize(
    ("version", "old", "chooses_resolver"), [("3.6.15", True, False), ("3.7.16", True, True), ("3.11.7", False, True)]
)
def test_pip_tools_of_an_old_python_gets_a_pip_and_options_that_it_knows(
    version: str, old: bool, chooses_resolver: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python 3.6 brings pip 18.1, and pip-tools 6.4.0, the last for it, has no option `--resolver`."""
    commands: list[tuple[str, ...]] = []

    def stream(argv: Sequence[str], **_: object) -> Result:
        commands.append(tuple(argv))
        if "compile" in argv:
            Path(argv[argv.index("--output-file") + 1]).write_text(f"six==1.17.0 \\\n    --hash=sha256:{'0' * 64}\n")
        return Result(argv=tuple(argv), code=0, tail=())

    monkeypatch.setattr(fetching, "stream", stream)
    source = tmp_path / "requirements" / "own.in"
    source.parent.mkdir()
    source.write_text("six\n")
    minor = version.rpartition(".")[0]
    interpreter = Interpreter(executable=f"/site/python{minor}", version=version, tag="x", own_venv=old)
    written = lock_compiler.compile_locks(interpreter, [source], upgrade=False)
    assert written == [str(source.with_name(f"own-py{minor.replace('.', '')}.txt"))]
    installs = [argv for argv in commands if "install" in argv]
    assert all("--require-hashes" in argv and "--no-deps" in argv for argv in installs)
    assert all(argv[-2] == "-r" for argv in installs)  # no package by its name alone
    assert ("--resolver=backtracking" in commands[-1]) is chooses_resolver


def test_each_python_for_which_there_are_locks_has_one_of_pip_tools() -> None:
    minors = {path.stem.rpartition("-py")[2] for path in (REPOSITORY / "requirements").glob("*-py3*.txt")}
    assert minors == {path.stem.rpartition("-py")[2] for path in (REPOSITORY / "requirements").glob("pip-tools-*.txt")}
    for minor in minors:
        lock = load_lock("pip-tools", f"3.{minor[1:]}")
        assert {"pip", "pip-tools"} <= {pin.name for pin in lock.pins}
        assert all(pin.hashes for pin in lock.pins)


@pytest.mark.parametrize("words", [(), ("--all", "x"), ("--upgrade",)])
def test_a_lock_is_compiled_only_if_it_is_named_or_all_are(words: tuple[str, ...], tmp_path: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (REPOSITORY / "requirements").iterdir()}
    assert call("lock", *words) == 2
    assert {path: path.stat().st_mtime_ns for path in (REPOSITORY / "requirements").iterdir()} == before


@pytest.mark.parametrize("words", [("--all",), ("x",)])
def test_the_files_of_an_installed_tool_are_not_changed(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shipped = tmp_path / "_shipped"
    (shipped / "requirements").mkdir(parents=True)
    (shipped / "requirements/x.in").write_text("six\n")
    monkeypatch.setattr(search_path, "INSIDE", str(shipped))
    assert call("lock", *words) == 2
    assert "comes with the installed tool" in capsys.readouterr().err
    assert [path.name for path in (shipped / "requirements").iterdir()] == ["x.in"]


def test_an_installer_that_is_silent_for_long_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fetching, "SAYS_EVERY_S", 1)
    argv = (sys.executable, "-c", "import time; time.sleep(2.5)")
    fetching.run_installer(argv, tmp_path / "log", doing="compiling x.txt")
    lines = capsys.readouterr().err.splitlines()
    assert lines and all(line.startswith("compiling x.txt: ") for line in lines)
