"""The live tables of a build and of several jobs: what it says of a step, that it fits on small terminals, and how it ends."""

from __future__ import annotations

import io

import pytest

from golden_files import Words
from provision.machine.terminal.live_table import BuildTable, JobsTable, Table, drawn
from provision.model.event import Event

STEPS = (
    ("create", "virtual environment with Python 3.11", "keep"),
    ("install", "44 locked packages by uv", "create"),
    ("compile", "Horovod 0.28.1+provision.18 from source", "create"),
    ("horovod", "Horovod into the environment", "create"),
    ("bytecode", "bytecode of all packages", "create"),
    ("inspect", "versions and libraries of the environment", "create"),
    ("candidate", "candidate modulefile", "create"),
    ("proof", "train on 2 ranks, 1 node", "create"),
    ("publish", "users load tensorflow/2.21.0", "create"),
)
EXPECTED = (
    ("install", 15.0),
    ("compile", 112.0),
    ("horovod", 0.4),
    ("bytecode", 9.0),
    ("inspect", 5.0),
    ("candidate", 0.0),
    ("proof", 14.0),
)
PLAN = Event(kind="plan", steps=STEPS, expected=EXPECTED)
NINJA = "[3/27] Building CXX object horovod/common/CMakeFiles/common.dir/group_table.cc.o"


class Clock:
    """Seconds that pass when the test says so."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def build(plan: Event = PLAN) -> tuple[BuildTable, Clock]:
    """A build that installed for 16 s, and has compiled for 24."""
    clock = Clock()
    table = BuildTable(clock=clock, say=lambda text: None)
    table.listen(plan)
    table.listen(Event(kind="started", step="install", text="44 locked packages by uv"))
    clock.now += 16
    table.listen(Event(kind="finished", step="install", seconds=16.2, text="1.7 GB"))
    table.listen(Event(kind="started", step="compile", text="Horovod"))
    table.listen(Event(kind="progress", step="compile", text=NINJA))
    clock.now += 24
    return table, clock


def text_of(table: Table, width: int = 100, height: int = 30) -> list[str]:
    """The table's lines without colours."""
    return [line.plain.rstrip() for line in table.screen(width, height)]


def test_a_running_build_is_drawn_like_this(words: Words) -> None:
    lines = text_of(build()[0])
    marks = ["= create", "✓ install", "› compile", "", "· horovod", "· bytecode", "· inspect", "· candidate"]
    assert [line[:12].strip() for line in lines] == [*marks, "· proof", "· publish", "step 3 of 9,"]
    assert "file 3 of 27, group_table.cc" in lines[3] and "1 min 52 s" in lines[3]
    assert "40 s" in lines[-1] and "2 min" in lines[-1]
    words("build", "\n".join(lines))


def test_a_warning_of_the_compiler_does_not_hide_the_count() -> None:
    table, _ = build()
    table.listen(Event(kind="progress", step="compile", text="   | ^~~~~~~~~~~"))
    assert "3 of 27, group_table.cc" in text_of(table)[3]


def test_what_a_step_did_is_not_shown_of_the_next() -> None:
    table, _ = build()
    table.listen(Event(kind="finished", step="compile", seconds=112))
    table.listen(Event(kind="started", step="horovod"))
    assert "group_table.cc" not in "\n".join(text_of(table))


@pytest.mark.parametrize("expected", [(), EXPECTED[:-1]], ids=["none", "not of all steps"])
def test_without_the_seconds_of_an_earlier_build_there_is_no_estimate(
    expected: tuple[tuple[str, float], ...], words: Words
) -> None:
    table, _ = build(Event(kind="plan", steps=STEPS, expected=expected))
    assert text_of(table)[-1].startswith("step 3 of 9, 40 s")
    words("build", text_of(table)[-1])


def test_a_step_that_takes_longer_than_before_leaves_the_rest_to_the_estimate(words: Words) -> None:
    table, clock = build()
    clock.now += 500
    last = text_of(table)[-1]
    assert "step 3 of 9" in last and "9 min" in last and "30 s" in last
    words("build", last)


@pytest.mark.parametrize(("width", "height"), [(100, 30), (80, 24), (60, 8), (40, 20), (40, 8), (20, 4), (10, 2)])
def test_a_table_fits_and_keeps_its_marks(width: int, height: int) -> None:
    table, _ = build()
    for step in ("compile", "proof", "publish"):
        table.listen(Event(kind="started", step=step))
        lines = text_of(table, width, height)
        assert len(lines) < max(height, 4)
        assert all(len(line) < width for line in lines)
        assert any(line.startswith(f"› {step}"[: width - 1]) for line in lines)
        table.listen(Event(kind="finished", step=step, seconds=1))


def test_a_low_terminal_shows_the_running_step_and_the_next() -> None:
    lines = text_of(build()[0], 60, 8)
    starts = ("= create", "✓ install", "› compile", "  file 3 of 27", "· horovod", "· bytecode", "step 3 of 9")
    assert [line[: len(start)] for line, start in zip(lines, starts, strict=True)] == list(starts)
    assert lines[2] == "› compile      24 s  Horovod 0.28.1+provision.18 from sourc"


def test_a_build_that_ends_says_how_long_its_steps_took_also_if_it_is_followed_later(words: Words) -> None:
    table, clock = build()
    for name, _, _ in STEPS[2:]:
        table.listen(Event(kind="finished", step=name, seconds=1))
    clock.now += 100
    table.ended = table.clock()
    clock.now += 100
    lines = text_of(table, 60, 8)
    assert len(lines) == 10, "the result is whole also on a low terminal"
    assert "8 steps" in lines[-1] and "23 s" in lines[-1]
    words("build", lines[-1])


def test_a_build_that_stops_says_in_which_step(words: Words) -> None:
    table, _ = build()
    table.listen(Event(kind="failed", step="compile", seconds=24))
    table.listen(Event(kind="error", error={"message": "it failed"}))
    table.ended = table.clock()
    assert text_of(table)[2].startswith("✗ compile ")
    assert "compile" in text_of(table)[-1] and "40 s" in text_of(table)[-1]
    words("build", text_of(table)[-1])


def test_a_job_that_is_no_longer_followed_is_not_called_stopped(words: Words) -> None:
    table, _ = build()
    table.ended = table.clock()
    assert text_of(table)[2].startswith("› compile")
    assert "step 3 of 9" in text_of(table)[-1] and "40 s" in text_of(table)[-1]
    words("build", text_of(table)[-1])


def test_words_before_the_plan_are_printed_and_draw_no_table() -> None:
    said: list[str] = []
    table = BuildTable(clock=Clock(), say=said.append)
    table.listen(Event(kind="say", text="waiting: x is being built by alice"))
    assert said == ["waiting: x is being built by alice"]
    assert table.screen(80, 24) == []


class Terminal(io.TextIOWrapper):
    """A terminal of this encoding that keeps what is drawn."""

    def __init__(self, encoding: str) -> None:
        self.bytes = io.BytesIO()
        super().__init__(self.bytes, encoding=encoding, write_through=True)

    def isatty(self) -> bool:
        return True


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of 60 by 8 for rich."""
    for name, value in (("COLUMNS", "60"), ("LINES", "8"), ("TERM", "xterm-256color")):
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("encoding", "mark"), [("utf-8", "✓"), ("latin-1", "+"), ("ascii", "+")])
def test_marks_are_drawn_in_what_the_terminal_can_write(encoding: str, mark: str) -> None:
    terminal = Terminal(encoding)
    with drawn(BuildTable(), terminal) as table:
        table.listen(PLAN)
        table.listen(Event(kind="say", text="said above"))
        table.listen(Event(kind="started", step="install"))
        table.listen(Event(kind="finished", step="install", seconds=1))
    shown = terminal.bytes.getvalue().decode(encoding)
    assert f"{mark} install " in shown
    assert "said above" in shown
    assert "1 step " in shown


@pytest.mark.usefixtures("small")
def test_no_color_draws_without_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    def colours() -> bool:
        terminal = Terminal("utf-8")
        with drawn(BuildTable(), terminal) as table:
            table.listen(PLAN)
            table.listen(Event(kind="finished", step="install", seconds=1))
        return b"[32m" in terminal.bytes.getvalue()

    assert colours()
    monkeypatch.setenv("NO_COLOR", "1")
    assert not colours()


def test_each_job_has_a_line_with_its_step_and_what_it_does(words: Words) -> None:
    now, said = 0.0, []
    table = JobsTable(clock=lambda: now, say=said.append)
    knl, haswell, gpu = map(table.listener, ("knl", "haswell", "gpu"))
    for listen in (knl, haswell, gpu):
        listen(Event(kind="say", text="job 7 is pending (Priority)"))
    for listen in (knl, haswell):
        listen(Event(kind="plan", steps=(*STEPS[:3], STEPS[-1])))
    knl(Event(kind="started", step="compile"))
    knl(Event(kind="progress", text="[3/27] Building CXX object a/b.cc.o"))
    haswell(Event(kind="started", step="install"))
    haswell(Event(kind="failed", step="install", seconds=4))
    haswell(Event(kind="error", text="job 8 failed"))
    knl(Event(kind="say", text="the lock was free"))
    now = 12.0
    lines = text_of(table, 80)
    assert [line.split()[:2] for line in lines[:3]] == [["›", "knl"], ["✗", "haswell"], ["·", "gpu"]]
    assert "12 s  compile (3 of 4)" in lines[0] and "3 of 27, b.cc" in lines[0]
    assert lines[1].endswith("  job 8 failed") and lines[2].endswith("  job 7 is pending (Priority)")
    assert "0 of 3 jobs" in lines[3] and "1 failed" in lines[3] and "12 s" in lines[3]
    words("build", "\n".join(lines))
    assert said == ["knl: the lock was free"]
    knl(Event(kind="started", step="publish"))
    knl(Event(kind="finished", step="publish", seconds=1))
    now = 99.0
    table.ended = table.clock()
    lines = text_of(table, 80)
    assert lines[0].startswith("✓ knl        12 s  ")
    assert "1 of 3 jobs" in lines[-1] and "1 min 39 s" in lines[-1]
    words("build", f"{lines[0]}\n{lines[-1]}")


def test_a_small_terminal_shows_running_jobs_first_and_no_line_is_too_long() -> None:
    table = JobsTable(clock=lambda: 0.0)
    listeners = [table.listener(f"arch{number}") for number in range(9)]
    listeners[7](Event(kind="started", step="compile"))
    lines = text_of(table, width=20, height=5)
    assert len(lines) == 4
    assert lines[0].startswith("› arch7")
    assert max(map(len, lines)) <= 19
    table.ended = table.clock()
    assert len(text_of(table, height=5)) == 10
