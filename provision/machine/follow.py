"""A job followed to its end: every change of its state, every step of its build, and why it failed."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from provision.errors import CommandError, JobError
from provision.knowledge.failures import explain, pick_error_lines
from provision.machine.store import Store
from provision.machine.submission import status
from provision.model.event import Event, Listener, parse_event
from provision.profile.scheduler import SchedulerName
from provision.schedulers import TITLES, scheduler_for
from provision.schedulers.status import JobStatus, ending


@dataclass(slots=True)
class Follower:
    """Reads what a job says of itself, from where it stopped reading."""

    path: Path
    offset: int = 0

    def events(self) -> list[Event]:
        """The events since the last call; an unfinished last line waits for its rest."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.offset)
                new = file.read()
        except OSError:
            return []
        whole = new[: new.rfind(b"\n") + 1]
        self.offset += len(whole)
        return [event for event in map(parse_event, whole.decode(errors="replace").splitlines()) if event]


def follow(
    job: str,
    scheduler: SchedulerName,
    store: Store,
    listen: Listener,
    pause: Callable[[float], None] = time.sleep,
) -> JobStatus:
    """Follow a job to its end: every change of its state, every step of its build.

    Raises:
        JobError: it failed, was cancelled, ran out of time, or is not known; told as exactly that.
    """
    jobs, last, published = Path(store.layout.jobs), "", False
    first, waited = True, 0
    follower: Follower | None = None
    while True:
        try:
            now = status(job, scheduler)
        except CommandError as error:
            if first:
                raise
            # A controller that restarts is no news of the job.
            if last != error.message:
                listen(Event(kind="say", text=f"{error.message}, trying again: {' '.join(error.evidence)}"))
                last = error.message
            pause(5.0)
            continue
        found = next(iter(sorted(jobs.glob(f"*-{job}.events.jsonl"))), None)
        if follower is None and found:
            follower = Follower(found)
        first = False
        for event in follower.events() if follower else ():
            published = published or (event.kind == "finished" and event.step == "publish")
            listen(event)
        if now is None and published:
            return JobStatus(job=job, state="COMPLETED")
        if now is None:
            raise JobError(
                f"{TITLES[scheduler]} does not know job {job} (any more)",
                state="UNKNOWN",
                evidence=[f"its output: {path}" for path in sorted(jobs.glob(f"*-{job}.out"))],
                hint="`provision list` shows whether it published",
            )
        why = scheduler_for(scheduler).waiting(now) if now.state == "PENDING" else ""
        word = f"job {job} is {now.state.lower()}" + (f" ({why})" if why else "")
        if now.state == "RUNNING":
            word += f" on {now.nodes}"
        if word != last and not now.ended:
            listen(Event(kind="say", text=word))
            last = word
        if now.ended:
            for event in follower.events() if follower else ():
                listen(event)
            return _ended(now)
        waited += 1
        pause(1.0 if waited < 60 else 5.0)  # the controller has others to serve


def _ended(now: JobStatus) -> JobStatus:
    if now.state == "COMPLETED":
        return now
    try:
        lines = Path(now.output).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    told = our_error(lines)
    log = next((found[1] for line in told if (found := re.match(r"\s*log: (.*)", line))), now.output)
    known = explain(lines)
    own = {
        "TIMEOUT": "raise `job.time` in the site's file, and submit it again: what is done is kept",
        "CANCELLED": "submit it again: what is done is kept",
        "OUT_OF_MEMORY": "ask for more in `job.options` of the site's file (`--mem=…`)",
    }.get(now.state)
    raise JobError(
        ending(now) + (f": {known.cause}" if known and not told and own is None else ""),
        state=now.state,
        evidence=[*(told or pick_error_lines(lines)), *([f"output: {now.output}"] if lines else [])],
        hint=own or next((line.removeprefix("hint: ") for line in lines if line.startswith("hint: ")), f"read `{log}`"),
        log=log if lines else None,
    )


def our_error(lines: Sequence[str]) -> list[str]:
    """What `provision build` itself said at the end of a job's output: its error, without the hint."""
    starts = [number for number, line in enumerate(lines) if line.startswith("error: ")]
    if not starts:
        return []
    block = list(lines[starts[-1] :])
    return block[: block.index("")] if "" in block else block
