"""Follow a job to its end: report every change of its state, every step of its build, and why it failed."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from provision.errors import CommandError, JobError, ProvisionError
from provision.machine.files.trusted_files import MIB, open_regular
from provision.machine.probes.ask_scheduler import status
from provision.machine.programs.failed_program import diagnose
from provision.machine.programs.secrets_here import secrets_here
from provision.machine.root.store import Store
from provision.model.event import Event, Listener, parse_event
from provision.profile.scheduler import SchedulerName
from provision.schedulers import TITLES, scheduler_for
from provision.schedulers.status import JobStatus, ending

# Of events, and of the end of a job's output: more is not needed, unless something is wrong.
MOST_AT_ONCE = MIB
# How long this machine may not see what a node has written: clients of NFS believe what they know of a folder for up to 60 s
# (nfs(5), acdirmax).
LATE_S = 90.0


@dataclass(slots=True)
class Follower:
    """Reads the events that a job writes, from the position of the last call."""

    path: Path
    offset: int = 0

    def events(self) -> list[Event]:
        """The events since the last call; an unfinished last line is read later."""
        try:
            descriptor, status = open_regular(self.path, follow=False)
            with os.fdopen(descriptor, "rb") as file:
                if status.st_size < self.offset:  # the job was started again, and writes the file anew
                    self.offset = 0
                file.seek(self.offset)
                new = file.read(MOST_AT_ONCE)
        except OSError:
            return []
        whole = new[: new.rfind(b"\n") + 1]
        self.offset += len(whole)
        return [event for event in map(parse_event, whole.decode(errors="replace").splitlines()) if event]


@dataclass(slots=True)
class FollowedJob:
    """A job whose changes are reported until it ends: every change of its state, every step of its build.

    `build` says whether it is the job of a build or of a user; None: a build if it wrote events.
    """

    job: str
    scheduler: SchedulerName
    store: Store
    listen: Listener
    last: str = ""
    """The last sentence about its state."""
    looks: int = 0
    published: bool = False
    failure: Mapping[str, Any] = field(default_factory=dict)
    follower: Follower | None = None
    build: bool | None = None
    command: str = "provision job KIND"
    """The command that wrote a user's job, for a hint of how it goes on."""
    failed: JobStatus | None = None
    """A task of an array that did not end well: the scheduler forgets it before the others have ended."""
    output: str = ""

    @property
    def number(self) -> str:
        """The job's ID in the names of its files, without the cluster that has it."""
        return self.job.partition("@")[0]

    @property
    def pause_s(self) -> float:
        """How long to wait before the next look, in seconds: the controller is spared."""
        return 1.0 if self.looks < 60 else 5.0

    def look(self) -> JobStatus | None:
        """Report what has changed since the last look; the status of a job that has completed.

        Raises:
            CommandError: the scheduler did not answer the first look.
            JobError: the job failed, was cancelled, ran out of time, or is not known; the message says which.
        """
        self.looks += 1
        try:
            now = status(self.job, self.scheduler)
        except CommandError as error:
            if self.looks == 1:
                raise
            # A controller that restarts changes nothing for the job.
            self._say(f"{error.message}, trying again: {' '.join(error.evidence)}", error.message)
            self.looks = max(self.looks, 60)
            return None
        self._read_events()
        self.failed = (now.failed if now else None) or self.failed
        build = self.follower is not None if self.build is None else self.build
        if now is None and self.failed:
            return _ended(self.failed, self.failure, self.command, build=build)
        if now is None:
            return self._forgotten()
        why = scheduler_for(self.scheduler).waiting(now) if now.state == "PENDING" else ""
        word = f"job {self.job} is {now.state.lower()}" + (f" ({why})" if why else "")
        if now.state == "RUNNING" and now.running > 1:
            word = f"{now.running} tasks of job {self.job} are running"
        elif now.state == "RUNNING" and now.nodes:
            word += f" on {now.nodes}"
        if now.ended:
            self._read_events()
            return _ended(self.failed or now, self.failure, self.command, build=build)
        self._say(word, word)
        if now.state == "RUNNING" and self.build is False and now.output not in ("", self.output):
            self.listen(Event(kind="say", text=f"output: {now.output}"))
            self.output = now.output
        return None

    def _say(self, text: str, what: str) -> None:
        if what != self.last:
            self.listen(Event(kind="say", text=text))
            self.last = what

    def _read_events(self) -> None:
        if self.follower is None:
            found = sorted(Path(self.store.layout.jobs).glob(f"*/*-{self.number}.events.jsonl"))
            self.follower = Follower(found[0]) if found else None
        for event in self.follower.events() if self.follower else ():
            self.published = self.published or (event.kind == "finished" and event.step == "publish")
            self.failure = event.error if event.kind == "error" else self.failure
            self.listen(event)

    def _forgotten(self) -> JobStatus:
        """The status of a job that the scheduler does not know any more, from its events."""
        if self.published:
            return JobStatus(job=self.job, state="COMPLETED")
        if self.failure:
            raise _failed(f"job {self.job} failed", "UNKNOWN", self.failure, None, None)
        outputs = sorted(Path(self.store.layout.jobs).glob(f"*/*-{self.number}.out"))
        raise JobError(
            f"{TITLES[self.scheduler]} does not know job {self.job} any more, or never did",
            state="UNKNOWN",
            evidence=[f"its output: {path}" for path in outputs],
            hint="`provision list` shows whether the job published",
        )


def follow(
    job: str,
    scheduler: SchedulerName,
    store: Store,
    listen: Listener,
    pause: Callable[[float], None] = time.sleep,
    *,
    build: bool | None = None,
    command: str = "provision job KIND",
) -> JobStatus:
    """Follow a job to its end; `build` and `command` as in `FollowedJob`.

    Raises:
        CommandError: the scheduler did not answer at first.
        JobError: see `FollowedJob.look`.
    """
    followed = FollowedJob(job, scheduler, store, listen, build=build, command=command)
    while (ended := followed.look()) is None:
        pause(followed.pause_s)
    return ended


def wait_until_seen(
    there: Callable[[], bool], folder: Path, say: Callable[[str], None], pause: Callable[[float], None] = time.sleep
) -> bool:
    """Wait until this machine sees below `folder` what a job wrote; whether it does. The file system may be late."""
    waited = 0.0
    while not there():
        if waited >= LATE_S:
            return False
        if not waited:
            say(f"the job ended well; waiting up to {LATE_S:.0f} s until this machine sees its result below `{folder}`")
        pause(1.0)
        waited += 1.0
        with contextlib.suppress(OSError):
            os.listdir(folder)  # noqa: PTH208  (a client of NFS then asks for the folder again)
    return True


def follow_all(
    jobs: Sequence[FollowedJob], pause: Callable[[float], None] = time.sleep
) -> dict[str, ProvisionError | None]:
    """Follow jobs until all have ended; one that fails stops no other.

    Returns the error of each job by its ID, or None if it completed.
    """
    results: dict[str, ProvisionError | None] = {}
    while True:
        for followed in jobs:
            if followed.job in results:
                continue
            try:
                if followed.look() is not None:
                    results[followed.job] = None
            except ProvisionError as error:
                results[followed.job] = error
                followed.listen(Event(kind="error", text=error.message))
        left = [followed for followed in jobs if followed.job not in results]
        if not left:
            return results
        pause(max(followed.pause_s for followed in left))


def last_part(path: str) -> bytes:
    """The last megabytes of a regular file.

    Raises:
        OSError: there is no such file.
    """
    descriptor, status = open_regular(path)
    with os.fdopen(descriptor, "rb") as file:
        file.seek(max(0, status.st_size - MOST_AT_ONCE))
        return file.read(MOST_AT_ONCE)


# What to do about a build that ended in this state, and about a user's job.
ADVICE_FOR_BUILDS = {
    "TIMEOUT": "raise `job.time` in the profile, then submit it again: finished steps are kept",
    "CANCELLED": "submit it again: finished steps are kept",
    "OUT_OF_MEMORY": "request more memory in `job.options` of the profile (`--mem=…`)",
}
ADVICE_FOR_USERS = {
    "TIMEOUT": "`{command} --resume-from {job}` continues from its checkpoints; `--time` asks for more time",
    "CANCELLED": "`{command} --resume-from {job}` continues from its checkpoints",
    "PREEMPTED": "`{command} --resume-from {job}` continues from its checkpoints; `--requeue` does it without you",
    "OUT_OF_MEMORY": "`{command} --memory SIZE` requests more for each CPU, `--cpus` more CPUs",
}


def _ended(now: JobStatus, failure: Mapping[str, Any], command: str, *, build: bool) -> JobStatus:
    """The status of a job that completed, a build's or a user's.

    Raises:
        JobError: it failed; the evidence is the error of its build, or lines of its output.
    """
    if now.state == "COMPLETED":
        return now
    by_state = (ADVICE_FOR_BUILDS if build else ADVICE_FOR_USERS).get(now.state)
    by_state = by_state.format(job=now.job, command=command) if by_state else None
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
