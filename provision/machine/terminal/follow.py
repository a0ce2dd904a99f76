"""Follow a job to its end: report every change of its state, every step of its build, and why it failed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provision.errors import CommandError, JobError
from provision.machine.programs.failed_program import diagnose
from provision.machine.programs.secrets_here import secrets_here
from provision.machine.root.store import Store
from provision.machine.submission import status
from provision.machine.trusted_files import MIB, open_regular
from provision.model.event import Event, Listener, parse_event
from provision.profile.scheduler import SchedulerName
from provision.schedulers import TITLES, scheduler_for
from provision.schedulers.status import JobStatus, ending

# Of events, and of the end of a job's output: more is not needed, unless something is wrong.
MOST_AT_ONCE = MIB


@dataclass(slots=True)
class Follower:
    """Reads the events that a job writes, from the position of the last call."""

    path: Path
    offset: int = 0

    def events(self) -> list[Event]:
        """The events since the last call; an unfinished last line is read later."""
        try:
            with os.fdopen(open_regular(self.path, follow=False)[0], "rb") as file:
                file.seek(self.offset)
                new = file.read(MOST_AT_ONCE)
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
        JobError: it failed, was cancelled, ran out of time, or is not known; the message says which.
    """
    jobs, last, published = Path(store.layout.jobs), "", False
    first, waited = True, 0
    follower: Follower | None = None
    failure: Mapping[str, Any] = {}
    while True:
        try:
            now = status(job, scheduler)
        except CommandError as error:
            if first:
                raise
            # A controller that restarts changes nothing for the job.
            if last != error.message:
                listen(Event(kind="say", text=f"{error.message}, trying again: {' '.join(error.evidence)}"))
                last = error.message
            pause(5.0)
            continue
        if follower is None:
            found = sorted(jobs.glob(f"*/*-{job}.events.jsonl"))
            written = next((path for path in found if store.shared.refused(path) is None), None)
            follower = Follower(written) if written else None
        first = False
        for event in follower.events() if follower else ():
            published = published or (event.kind == "finished" and event.step == "publish")
            failure = event.error if event.kind == "error" else failure
            listen(event)
        if now is None and published:
            return JobStatus(job=job, state="COMPLETED")
        if now is None and failure:
            raise _failed(f"job {job} failed", "UNKNOWN", failure, None, None)
        if now is None:
            raise JobError(
                f"{TITLES[scheduler]} does not know job {job} any more, or never did",
                state="UNKNOWN",
                evidence=[f"its output: {path}" for path in sorted(jobs.glob(f"*/*-{job}.out"))],
                hint="`provision list` shows whether the job published",
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
                failure = event.error if event.kind == "error" else failure
                listen(event)
            return _ended(now, failure)
        waited += 1
        pause(1.0 if waited < 60 else 5.0)  # spare the controller


def last_part(path: str) -> bytes:
    """The last megabytes of a regular file.

    Raises:
        OSError: there is no such file.
    """
    descriptor, status = open_regular(path)
    with os.fdopen(descriptor, "rb") as file:
        file.seek(max(0, status.st_size - MOST_AT_ONCE))
        return file.read(MOST_AT_ONCE)


def _ended(now: JobStatus, failure: Mapping[str, Any]) -> JobStatus:
    """The status of a job that completed.

    Raises:
        JobError: it failed; the evidence is the error of its build, or lines of its output.
    """
    if now.state == "COMPLETED":
        return now
    by_state = {
        "TIMEOUT": "raise `job.time` in the profile, then submit it again: finished steps are kept",
        "CANCELLED": "submit it again: finished steps are kept",
        "OUT_OF_MEMORY": "request more memory in `job.options` of the profile (`--mem=…`)",
    }.get(now.state)
    try:
        # The lines are cut before they are shown, so a secret must be hidden before.
        lines = secrets_here().hide(last_part(now.output).decode(errors="replace")).splitlines()
    except OSError:
        lines = []
    if failure:
        raise _failed(ending(now), now.state, failure, by_state, now.output if lines else None)
    diagnosis = diagnose(lines)
    raise JobError(
        f"{ending(now)}: {diagnosis.cause}" if diagnosis.cause and by_state is None else ending(now),
        state=now.state,
        evidence=[*diagnosis.evidence, *([f"output: {now.output}"] if lines else ())],
        hint=by_state or diagnosis.hint or f"read `{now.output}`",
        log=now.output if lines else None,
    )


def _failed(what: str, state: str, failure: Mapping[str, Any], hint: str | None, output: str | None) -> JobError:
    """The error of a job whose build wrote an error event."""
    given = failure.get("evidence")
    evidence = [str(failure.get("message")), *(f"  {line}" for line in (given if isinstance(given, list) else ()))]
    log = str(failure.get("log") or "") or output
    evidence += [f"log of the step: {log}"] if log and log != output else []
    evidence += [f"output: {output}"] if output else []
    hint = hint or str(failure.get("hint") or "") or (f"read `{log}`" if log else None)
    return JobError(what, state=state, evidence=evidence, hint=hint, log=log, cause=failure)
