"""Several jobs drawn on a terminal: a line for each, with its state, its step, and what the step does."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from provision.machine.terminal.live_table import MARKS, STYLES, Line, cut
from provision.model.event import Event, Listener
from provision.model.progress import Doing, read_progress
from provision.wording import count, duration


@dataclass(slots=True)
class JobRow:
    """One job: its state, the steps of its build, and the seconds from its first step to its end."""

    state: str = "create"
    words: str = "submitted"
    steps: list[str] = field(default_factory=list)
    doing: Doing = field(default_factory=Doing)
    began: float | None = None
    seconds: float | None = None


@dataclass(slots=True, kw_only=True)
class JobsTable:
    """The state of several jobs, from their events. `clock` gives monotonic seconds, `say` prints a line above the table."""

    names: Sequence[str]
    say: Callable[[str], None] = print
    marks: dict[str, str] = field(default_factory=lambda: MARKS)
    clock: Callable[[], float] = time.monotonic
    rows: dict[str, JobRow] = field(init=False)
    began: float = field(init=False)
    ended: float | None = None

    def __post_init__(self) -> None:
        self.rows = {name: JobRow() for name in self.names}
        self.began = self.clock()

    def listener(self, name: str) -> Listener:
        """What takes the events of one job into the table."""
        row = self.rows[name]

        def listen(event: Event) -> None:
            now = self.clock()
            match event.kind:
                case "plan":
                    row.steps, row.state, row.began = [step for step, _, _ in event.steps], "run", now
                case "started":
                    at = f" ({row.steps.index(event.step) + 1} of {len(row.steps)})" if event.step in row.steps else ""
                    row.state, row.words, row.doing = "run", f"{event.step}{at}", Doing()
                    row.began = now if row.began is None else row.began
                case "progress":
                    row.doing = read_progress(event.text, row.doing)
                case "finished" if event.step == (row.steps[-1] if row.steps else "publish"):
                    words = "published" if event.step == "publish" else "done"
                    row.state, row.words, row.doing = "done", words, Doing()
                    row.seconds = 0.0 if row.began is None else now - row.began
                case "failed":
                    row.state, row.words, row.doing = "failed", f"stopped in step {event.step}", Doing()
                    row.seconds = 0.0 if row.began is None else now - row.began
                case "error":
                    row.state, row.words = "failed", event.text
                case "say" if row.state == "create":
                    row.words = event.text
                case "say":
                    self.say(f"{name}: {event.text}")
                case _:
                    pass

        return listen

    def end(self) -> None:
        """Stop the clock: what is drawn from now on is the result."""
        self.ended = self.clock()

    def screen(self, width: int, height: int) -> list[Line]:
        """The lines of the table, each at most `width - 1` long; at most `height - 1` while it runs, the busy jobs first."""
        now = self.clock() if self.ended is None else self.ended
        rows = list(self.rows.items())
        if self.ended is None and len(rows) > height - 2:
            order = {"run": 0, "failed": 1, "create": 2, "done": 3}
            rows = sorted(rows, key=lambda row: order[row[1].state])[: max(1, height - 2)]
        longest = max(map(len, self.rows), default=0)
        lines: list[Line] = [self._row(name, row, longest, now) for name, row in rows]
        of_state = [row.state for row in self.rows.values()]
        parts = [f"{of_state.count('done')} of {count(len(of_state), 'job')} done"]
        parts += [f"{of_state.count('failed')} failed"] if "failed" in of_state else []
        lines.append(((", ".join([*parts, duration(now - self.began)]), "bold"),))
        return [cut(line, width - 1) for line in lines]

    def _row(self, name: str, row: JobRow, longest: int, now: float) -> Line:
        seconds = row.seconds if row.seconds is not None else now - row.began if row.began is not None else None
        taken = "" if seconds is None else f"{seconds:.0f} s"
        doing = f": {row.doing}" if str(row.doing) else ""
        style = STYLES.get(row.state, "dim")
        return (
            (f"{self.marks[row.state]} {name:<{longest}} ", style),
            (f"{taken:>7}  ", ""),
            (f"{row.words}{doing}", ""),
        )
