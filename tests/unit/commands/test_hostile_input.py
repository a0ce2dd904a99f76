"""Attacks on the command line itself: what a profile, a path or a variable contains never runs, and is refused without a bug."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from golden_files import Words
from parts.cli import call
from parts.profiles import SITES


@pytest.mark.parametrize("hidden", ["x'\ntouch FILE\n'", "x\n#SBATCH --wrap=id", "x\x1b[2J", "x\u2028y"])
@pytest.mark.parametrize("kind", ["single", "build"])
def test_a_line_break_in_a_profile_or_variable_is_refused(
    hidden: str,
    kind: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: Words,
) -> None:
    path = tmp_path / "sigma2-saga.toml"
    text = (SITES / "sigma2-saga.toml").read_text()
    path.write_text(text.replace('title = "', f"title = {json.dumps(hidden)} # ", 1))
    command = ("job", kind, "--site", str(path), "--arch", "normal", "--account", "tests")
    assert call(*command) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "title: " in captured.err
    words("job", captured.err)
    path.write_text(text)
    monkeypatch.setenv("PROVISION_ROOT", f"/site{hidden}")
    assert call(*command) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "root: " in captured.err
    words("job", captured.err)


@pytest.mark.parametrize(
    "words",
    [
        ("job", "single", "--arguments", os.fsdecode(b"--name caf\xe9")),
        ("job", "single", "--data", os.fsdecode(b"/data/caf\xe9")),
        ("job", "single", "--data", "/data\n#SBATCH --wrap=id"),
        ("job", "single", "--account", "x\n#SBATCH --wrap=id"),
        ("job", "single", "--queue", "x --wrap=id"),
        ("job", "single", "--time", "1:00\n"),
        ("job", "single", "--resume-from", "1\n"),
        ("job", "single", "--resume-from", "\u0661"),
        ("job", "single", "--venv", "/x\n"),
        ("job", "single", "--module", "x/1\n"),
        ("job", "build", "--profile", "--account", "x\n"),
        ("data", "push", "/etc/hostname", "--name", "x\n"),
    ],
)
def test_a_line_break_or_bytes_in_an_option_are_refused(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROVISION_ROOT", "/site/root")
    more = () if words[0] == "data" else ("--arch", "normal", *(() if "--account" in words else ("--account", "tests")))
    assert call(*words, "--site", "sigma2-saga", *more) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert "bug in provision" not in captured.err
