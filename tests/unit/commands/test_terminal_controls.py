"""Nothing of a log, a name or a message reaches a terminal as a control character: each is shown as an escape sequence."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from parts.cli import call, envelope
from provision.machine.terminal.live_table import BuildTable, drawn
from provision.model.event import Event

Captured = pytest.CaptureFixture[str]
KINDS = {
    "reset": "\x1bc",
    "device-control": "\x1bP0;1|17/17\x1b\\",
    "soft-reset": "\x1b[!p",
    "colour": "\x1b[31m",
    "clipboard": "\x1b]52;c;" + "QUFB" * 99 + "\x07",
    "title": "\x1b]0;own\x1b\\",
    "c1": "\x9b31m",
    "bidi": "\u202egpj.exe\u2066",
    "backspace": "safe\b\b\b\bevil",
    "bell": "\x07",
    "delete": "\x7f",
}
# Everything that a terminal may take for a command or that reverses text; lines and tabs are text.
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
every_kind = pytest.mark.parametrize("control", KINDS.values(), ids=KINDS)


@every_kind
def test_a_log_reaches_the_terminal_without_its_controls(control: str, tmp_path: Path, capsys: Captured) -> None:
    log = tmp_path / "x.log"
    for line in (
        f"OSError: {control} No space left on device: {control}",
        f"error: {control} is {control} wrong {control}",
    ):
        log.write_text(f"start\n{line}\n", encoding="utf-8")
        call("explain", str(log))
        out, err = capsys.readouterr()
        assert "\n" in out
        assert not CONTROL.search(out + err), (out, err)


def test_a_file_name_reaches_the_terminal_without_its_controls(tmp_path: Path, capsys: Captured) -> None:
    name = "-".join(KINDS.values()).replace("/", "_").replace("QUFB" * 99, "")
    folder = tmp_path / name
    folder.mkdir()
    (folder / "x.log").write_text("ValueError: x\n")
    for words in (
        ("explain", str(tmp_path)),
        ("explain", str(folder / "x.log")),
        ("explain", str(folder / "nosuch.log")),
        ("job", "lint", str(folder / "nosuch.sh")),
        ("job", "lint", str(folder / "x.log")),
        ("site", "check", str(folder / "x.log")),
        ("plan", "--stack", name),
        (name,),
        ("list", f"--{name}"),
    ):
        call(*words)
        out, err = capsys.readouterr()
        assert out or err, words
        assert not CONTROL.search(out + err), (words, out, err)


def test_json_has_the_characters_themselves(tmp_path: Path, capsys: Captured) -> None:
    log = tmp_path / "x.log"
    log.write_text(f"ValueError: {KINDS['bidi']}\n", encoding="utf-8")
    call("explain", str(log), "--json")
    assert KINDS["bidi"] in "".join(envelope(capsys)["result"]["lines"])


def test_only_our_own_colours_reach_a_terminal(tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    argv = [sys.executable, "-m", "provision", "explain", str(tmp_path / f"a{KINDS['colour']}b")]
    environ = {**os.environ, "TERM": "xterm"}
    environ.pop("NO_COLOR", None)
    subprocess.run(argv, stdin=follower, stdout=follower, stderr=follower, env=environ, check=False)
    os.close(follower)
    shown = os.read(leader, 65536).decode()
    os.close(leader)
    assert "\x1b[1;31merror:\x1b[0m" in shown
    assert r"a\x1b[31mb" in shown


@every_kind
def test_a_live_table_shows_the_controls_of_titles_and_lines(control: str) -> None:
    class Terminal(io.StringIO):
        encoding = "utf-8"  # type: ignore[assignment]

        def isatty(self) -> bool:
            return True

    stream = Terminal()
    with drawn(BuildTable(), stream) as table:
        table.listen(Event(kind="plan", steps=(("compile", f"a{control}b", "create"),)))
        table.listen(Event(kind="started", step="compile"))
        table.listen(Event(kind="say", text=f"c{control}d"))
        table.listen(Event(kind="progress", step="compile", text=f"Collecting e{control}f"))
    for first, last in ("ab", "cd", "ef"):
        assert f"{first}{control}{last}" not in stream.getvalue()
    assert control not in stream.getvalue() or control in KINDS["colour"]
