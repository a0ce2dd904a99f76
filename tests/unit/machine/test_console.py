"""Talking to people: plain lines without a terminal, errors in one shape, and streams that lack our marks."""

from __future__ import annotations

import contextlib
import io
import sys

import pytest

from golden_files import Words
from provision.errors import PlanError
from provision.machine.terminal.console import is_terminal, replace_unknown_characters, show_error
from provision.machine.terminal.progress_lines import Plain, listener, shown_as_step
from provision.model.event import Event

PLAN = Event(kind="plan", steps=(("install", "44 packages", "create"), ("proof", "train", "create")))


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_plain_lines_show_the_begin_and_end_of_each_step_and_the_total(words: Words) -> None:
    said: list[str] = []
    plain = Plain(say=said.append)
    for event in (
        Event(kind="say", text="waiting"),
        PLAN,
        Event(kind="started", step="install", text="44 packages"),
        Event(kind="progress", step="install", text="package 1 of 44"),
        Event(kind="finished", step="install", seconds=100.04, text="1.7 GB"),
        Event(kind="started", step="proof", text="train"),
        Event(kind="finished", step="proof", seconds=11),
    ):
        plain.listen(event)
    plain.end()
    assert said[0] == "waiting"
    assert [line.partition(": ")[0] for line in said[1:5]] == ["[1/2] install"] * 2 + ["[2/2] proof"] * 2
    assert said[1].endswith(" 44 packages") and said[3].endswith(" train")
    assert "100.0 s, 1.7 GB" in said[2] and "11.0 s" in said[4]
    assert "2 steps" in said[5] and "1 min 51 s" in said[5]
    words("build", "\n".join(said))


def test_plain_lines_show_a_failed_step_but_no_total(words: Words) -> None:
    said: list[str] = []
    plain = Plain(say=said.append)
    for event in (PLAN, Event(kind="failed", step="install", text="no network", seconds=3), Event(kind="error")):
        plain.listen(event)
    plain.end()
    (line,) = said
    assert line.startswith("[1/2] install: ") and "3.0 s" in line
    words("build", line)


@pytest.mark.parametrize(
    ("error", "last"), [(None, "done in"), (KeyboardInterrupt, "FAILED"), (PlanError("x"), "FAILED")]
)
def test_a_single_run_is_shown_as_one_step(error: BaseException | type[BaseException] | None, last: str) -> None:
    said: list[str] = []
    plain = Plain(say=said.append)
    with contextlib.suppress(KeyboardInterrupt, PlanError), shown_as_step(plain.listen, "proof", "the proof of x"):
        if error is not None:
            raise error
    assert said[0] == "[1/1] proof: the proof of x"
    assert said[1].startswith(f"[1/1] proof: {last}")


def test_without_a_terminal_the_listener_prints_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with listener() as listen:
        listen(PLAN)
        listen(Event(kind="started", step="install", text="44 packages"))
    assert stream.getvalue() == "[1/2] install: 44 packages\n"


@pytest.mark.parametrize(("term", "draws"), [("xterm", True), ("", True), ("dumb", False)])
def test_a_table_is_drawn_on_a_terminal_that_moves_its_cursor(
    term: str, draws: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", term)
    assert is_terminal(Terminal()) is draws
    assert not is_terminal(io.StringIO())


@pytest.mark.parametrize(
    ("stream", "term", "no_color", "colours"),
    [
        (Terminal(), "xterm", "", True),
        (Terminal(), "xterm", "1", False),
        (Terminal(), "dumb", "", False),
        (io.StringIO(), "xterm", "", False),
    ],
)
def test_only_the_word_error_is_coloured_and_only_on_a_terminal(
    stream: io.StringIO, term: str, no_color: str, colours: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setattr(sys, "stderr", stream)
    show_error(PlanError("an error: it failed", hint="`fix it`"))
    assert stream.getvalue().startswith("\033[1;31merror:\033[0m an error: it failed\n" if colours else "error: an")


@pytest.mark.parametrize(
    ("encoding", "written"),
    [
        ("utf-8", "✓ é · 1 … ✗ → ☃"),
        ("latin-1", "+ é · 1 ... x -> \\u2603"),
        ("ascii", "+ \\u00e9 . 1 ... x -> \\u2603"),
    ],
)
def test_a_stream_writes_ascii_for_what_its_encoding_lacks(encoding: str, written: str) -> None:
    data = io.BytesIO()
    stream = io.TextIOWrapper(data, encoding=encoding)
    replace_unknown_characters(stream, io.StringIO(), None)
    stream.write("✓ é · 1 … ✗ → ☃")
    stream.flush()
    assert data.getvalue().decode(encoding) == written


def test_the_bytes_of_a_files_name_are_written_as_they_are() -> None:
    data = io.BytesIO()
    stream = io.TextIOWrapper(data, encoding="utf-8", errors="surrogateescape")
    replace_unknown_characters(stream)
    stream.write("\udcff")
    stream.flush()
    assert data.getvalue() == b"\xff"
