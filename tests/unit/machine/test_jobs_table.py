"""Several jobs on a terminal: one line each, the busy ones first on a low terminal."""

from __future__ import annotations

from golden_files import Words
from provision.machine.terminal.jobs_table import JobsTable
from provision.model.event import Event

STEPS = tuple((name, name, "create") for name in ("create", "install", "compile", "publish"))


def drawn(table: JobsTable, width: int = 80, height: int = 24) -> list[str]:
    """The lines of the table as text."""
    return ["".join(text for text, _ in line).rstrip() for line in table.screen(width, height)]


def test_each_job_has_a_line_with_its_step_and_what_it_does(words: Words) -> None:
    now, said = 0.0, []
    table = JobsTable(names=["knl", "haswell", "gpu"], say=said.append, clock=lambda: now)
    knl, haswell, gpu = map(table.listener, table.names)
    for listen in (knl, haswell, gpu):
        listen(Event(kind="say", text="job 7 is pending (Priority)"))
    for listen in (knl, haswell):
        listen(Event(kind="plan", steps=STEPS))
    knl(Event(kind="started", step="compile"))
    knl(Event(kind="progress", text="[3/27] Building CXX object a/b.cc.o"))
    haswell(Event(kind="started", step="install"))
    haswell(Event(kind="failed", step="install", seconds=4))
    haswell(Event(kind="error", text="job 8 failed"))
    knl(Event(kind="say", text="the lock was free"))
    now = 12.0
    lines = drawn(table)
    assert [line.split()[:2] for line in lines[:3]] == [["›", "knl"], ["✗", "haswell"], ["·", "gpu"]]
    assert "12 s  compile (3 of 4)" in lines[0] and "3 of 27, b.cc" in lines[0]
    assert lines[1].endswith("  job 8 failed") and lines[2].endswith("  job 7 is pending (Priority)")
    assert "0 of 3 jobs" in lines[3] and "1 failed" in lines[3] and "12 s" in lines[3]
    words("build", "\n".join(lines))
    assert said == ["knl: the lock was free"]
    knl(Event(kind="started", step="publish"))
    knl(Event(kind="finished", step="publish", seconds=1))
    now = 99.0
    table.end()
    lines = drawn(table)
    assert lines[0].startswith("✓ knl        12 s  ")
    assert "1 of 3 jobs" in lines[-1] and "1 min 39 s" in lines[-1]
    words("build", f"{lines[0]}\n{lines[-1]}")


def test_a_small_terminal_shows_running_jobs_first_and_no_line_is_too_long() -> None:
    table = JobsTable(names=[f"arch{number}" for number in range(9)], clock=lambda: 0.0)
    table.listener("arch7")(Event(kind="started", step="compile"))
    lines = drawn(table, width=20, height=5)
    assert len(lines) == 4
    assert lines[0].startswith("› arch7")
    assert max(map(len, lines)) <= 19
    table.end()
    assert len(drawn(table, height=5)) == 10


def test_an_event_of_an_unknown_step_is_drawn() -> None:
    table = JobsTable(names=["a"], clock=lambda: 0.0)
    table.listener("a")(Event(kind="started", step="other"))
    table.listener("a")(Event(kind="finished", step="other"))
    assert "other" in drawn(table)[0]
