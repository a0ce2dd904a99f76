"""Locks: one process at a time, without locks of the kernel: Lustre without `flock`, and some NFS, have none.

The lock `NAME.lock` is a folder with one file: the claim of its holder, named by a token that no other has.

- To take it: make a folder with a claim beside it, and rename that to `NAME.lock`. A file system does so only as long as
  there is no such folder or an empty one, so one process gets it.
- To release it: remove the claim.
- If the holder is dead: remove the holder's claim, then take the lock like everybody else.

What removes a claim names it, so nothing happens to the claim of the next holder, however long one of them was stopped in
between. Killed at any point, a process leaves nothing but its own claim, or a folder that nobody looks at.

On the machine of the holder, the kernel knows whether it lives. On another machine the claim has to beat: its holder sets
its time every `BEAT_S` seconds. Who waits compares these times with each other and counts the seconds of its own clock, so
wrong clocks change nothing.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import json
import os
import shlex
import signal
import stat
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from provision.errors import StoreError
from provision.machine.files.beneath import FOLDER, change_mode
from provision.machine.files.disk import JSON, disk_error
from provision.machine.files.who_may_write import user_name
from provision.machine.programs.process_tree import end_marked
from provision.machine.programs.run import interrupts_deferred
from provision.machine.sharing import claims
from provision.machine.sharing.shared_root import SharedRoot
from provision.model.quoting import bash
from provision.wording import count

BEAT_S = 2.0
POLL_S = 0.3
# Of a claim on another machine, and of a file that is not a claim: its holder may be writing it.
SILENCE_S = 60.0
NONSENSE_S = 3 * BEAT_S
# A longer pause between two looks, of this process or of the file system, does not count as silence of the holder.
MOST_COUNTED_S = 2.0
ASK_SCHEDULER_S = 15.0
# The programs that a holder starts have its token in this variable, so that they are found when the holder was killed.
MARK = "PROVISION_LOCK"


def claim_of(path: Path) -> claims.Claim | None:
    """The claim of the holder of the lock at this path, dead or not; None if it is free."""
    try:
        folder = os.open(path, FOLDER | os.O_NOFOLLOW)
    except OSError:
        return claims.read_claim(path)  # nothing, or something else that is in the way
    try:
        names = sorted(name for name in os.listdir(folder) if not name.startswith("."))  # noqa: PTH208  # not NFS's own
    finally:
        os.close(folder)
    found = (claims.read_claim(path / name) for name in names)
    return next((claim for claim in found if claim is not None), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """What is done while another process holds the lock.

    `waits` is called once with each holder, `looks` about three times a second. `says` gets a line about a lock that is
    taken over. `ended` asks the scheduler whether a job has ended; None: it does not know.
    """

    waits: Callable[[JSON], None] = lambda _: None
    looks: Callable[[], None] = lambda: None
    says: Callable[[str], None] | None = None
    ended: Callable[[str], bool | None] = lambda _: None

    def say(self, line: str) -> None:
        """Pass on a line; without `says` it goes to the terminal."""
        if self.says is None:
            from provision.machine.terminal.console import say  # it loads much, and is rarely needed

            say(line)
        else:
            self.says(line)


@dataclass(slots=True)
class HeldLock:
    """A lock that this process holds, or is about to take."""

    path: Path
    says: JSON
    shared: SharedRoot
    lost_to: str | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    beating: threading.Thread | None = None

    @property
    def environ(self) -> Mapping[str, str]:
        """The variable that marks the programs that are started under this lock."""
        return {MARK: str(self.says["token"])}

    @property
    def claim(self) -> Path:
        """The file of the claim."""
        return self.path / str(self.says["token"])

    def refuse_lost(self) -> None:
        """Raise an error of kind `locked` if another process took the lock: this one was stopped for long and counted as dead."""
        if self.lost_to is not None:
            raise StoreError(
                f"another process took the lock of this one: {self.lost_to}",
                evidence=[f"lock: {self.path}", "this process did not run for a while, or its lock was removed"],
                hint="run the same command again: it waits for that process",
                kind="locked",
            )

    def enter(self) -> bool:
        """Take the folder of the lock, if nobody has it.

        Raises:
            OSError: it cannot be written.
        """
        beside = self.path.with_name(f".{self.path.name}.{os.getpid()}.{str(self.says['token'])[:6]}")
        try:
            beside.mkdir()
            (beside / self.claim.name).write_text(json.dumps(self.says), encoding="utf-8")
            # Every admin may remove a dead claim; before, nobody else can write here.
            mode = self.path.parent.stat().st_mode & 0o7775
            change_mode(beside, lambda _: mode)
            beside.rename(self.path)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.ENOENT):
                raise
            if not self.path.parent.is_dir():
                raise
        finally:
            self.shared.remove(beside)
        return self.claim.exists()  # also if the answer of the server was lost

    def beat(self) -> None:
        """Show that this process lives, and notice if the lock was lost.

        Raises:
            OSError: the file system does not allow it.
        """
        try:
            os.utime(self.claim)
        except FileNotFoundError:
            if not self.enter():
                other = claim_of(self.path)
                self.lost_to = claims.describe_holder(other.says if other else {})

    def keep_beating(self) -> None:
        """Beat until the lock is released; if it is lost, end what this process does."""
        while not self.stop.wait(BEAT_S):
            with contextlib.suppress(OSError):  # a full or read-only disk is reported by what is written next
                self.beat()
            if self.lost_to is not None:
                if callable(signal.getsignal(signal.SIGTERM)):  # of the command line; it ends what we started
                    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
                return

    def release(self) -> None:
        """Remove the claim, unless another process has taken the lock. It can be called twice, and before the lock is taken."""
        if self.says["pid"] != os.getpid():
            return  # a child of the holder ends
        with interrupts_deferred():
            self.stop.set()
            if self.beating is not None and self.beating.is_alive():
                self.beating.join()
            with contextlib.suppress(OSError):
                self.claim.unlink()
            with contextlib.suppress(OSError):
                self.path.rmdir()  # only if nobody else is in it


@contextlib.contextmanager
def held(
    shared: SharedRoot, path: Path, does: JSON, waiting: Waiting | None = None, *, wait: bool = True
) -> Iterator[HeldLock]:
    """Hold the lock at `path`. If another process holds it, wait for that process, or fail if `wait` is false.

    Raises:
        StoreError: another process holds the lock, or has taken it meanwhile, or the claim cannot be written.
    """
    shared.make(path.parent)
    lock = HeldLock(path, claims.make_claim(does), shared)
    # A signal can end this process before the `finally` below begins, or while this function is not running.
    atexit.register(lock.release)
    try:
        take(lock, waiting or Waiting(), wait=wait)
        yield lock
    except KeyboardInterrupt:
        lock.refuse_lost()
        raise
    finally:
        lock.release()
        atexit.unregister(lock.release)


def take(lock: HeldLock, waiting: Waiting, *, wait: bool) -> None:
    """Take the lock as soon as it is free, or its holder is dead.

    Raises:
        StoreError: another process holds it and `wait` is false, or the claim cannot be written.
    """
    watch = Watch(waiting=waiting, wait=wait)
    while True:
        claim = claim_of(lock.path)
        free = claim is None or watch.is_dead(claim)
        if claim is not None and not free and not wait:
            raise refused(lock.path, claim)
        try:
            with interrupts_deferred():
                if claim is not None and free:
                    lock.shared.remove(claim.place)
                if free and lock.enter():
                    lock.beating = threading.Thread(target=lock.keep_beating, name="lock", daemon=True)
                    lock.beating.start()
                    break
        except OSError as error:
            raise unwritable(lock.path, error) from error
        waiting.looks()
        time.sleep(POLL_S)
    if claim is not None:
        whose = f"the lock of {claims.describe_holder(claim.says)}" if claim.says else f"the lock `{lock.path}`"
        waiting.say(f"took over {whose}: {watch.dead[claim.key]}")


def holder(path: Path) -> JSON | None:
    """The holder of the lock at `path`, or None if it is free. This only looks, and does not wait for a beat.

    A claim of another machine counts if it was not silent for long, by the clocks of both machines.
    """
    claim = claim_of(path)
    if claim is None:
        return None
    lives = claims.judge_here(claim.says)[0]
    if lives is None:
        lives = time.time() - claim.beat / 1e9 < SILENCE_S
    return dict(claim.says) if lives else None


def is_left(path: Path) -> bool:
    """Whether a process of this machine that has ended left its claim at `path`, and this one may remove it."""
    claim = claim_of(path)
    return claim is not None and claims.judge_here(claim.says)[0] is False and os.access(path.parent, os.W_OK)


@dataclass(slots=True, kw_only=True)
class Watch:
    """Watches the claims of other processes. `dead` has the keys of those that are known to be dead, each with the reason."""

    waiting: Waiting
    wait: bool
    dead: dict[str, str] = field(default_factory=dict)
    key: str = ""
    beat: int = 0
    reported: bool = False
    silent_s: float = 0.0
    asked_s: float = -ASK_SCHEDULER_S
    looked: float = 0.0

    def is_dead(self, claim: claims.Claim) -> bool:
        """Whether the holder is known to be dead."""
        now = time.monotonic()
        passed, self.looked = min(now - self.looked, MOST_COUNTED_S), now
        if claim.says:
            self.dead.pop(claims.OTHER, None)  # what is not a claim now may be one that is being written
        if claim.key not in self.dead:
            if claim.key != self.key:
                self.key, self.beat, self.reported = claim.key, claim.beat, False
                self.silent_s, self.asked_s, passed = 0.0, -ASK_SCHEDULER_S, 0.0
            why = self._why_dead(claim, passed) if claim.says else self._why_no_claim(passed)
            if why is None:
                return False
            self.dead[claim.key] = why
        return True

    def _why_no_claim(self, passed: float) -> str | None:
        """The seconds count for the path, not for the file: it may be another one each time."""
        self.silent_s += passed
        return "the file is not a lock" if self.silent_s >= NONSENSE_S else None

    def _why_dead(self, claim: claims.Claim, passed: float) -> str | None:
        """Why the holder of this claim is dead; None as long as it may live. `passed`: the seconds since the last look."""
        here, why = claims.judge_here(claim.says)
        if here is False:
            number, left = end_marked(MARK, claim.key)  # what a dead holder on this machine left
            if left:
                return None
            return f"{why}; ended {count(number, 'process', 'processes')} that it left" if number else why
        lives = here is True or claim.beat != self.beat
        self.silent_s, self.beat = 0.0 if lives else self.silent_s + passed, claim.beat
        if self.silent_s >= SILENCE_S:
            return f"no sign of life for {SILENCE_S:.0f} s"
        if here is None and (self.silent_s >= 2 * BEAT_S or not self.wait) and self._job_ended(claim):
            return f"job {claim.says['job']} has ended"
        if self.wait and not self.reported and (lives or self.silent_s > BEAT_S):
            self.reported = True
            self.waiting.waits(dict(claim.says))
        return None

    def _job_ended(self, claim: claims.Claim) -> bool:
        """Ask the scheduler from time to time whether the job of a silent holder has ended."""
        job = claim.says.get("job")
        if not isinstance(job, str) or self.silent_s - self.asked_s < ASK_SCHEDULER_S:
            return False
        self.asked_s = self.silent_s
        return bool(self.waiting.ended(job))


def refused(path: Path, claim: claims.Claim) -> StoreError:
    """The error for a lock that another process holds, or at whose path is something else."""
    if claim.says:
        hint = "run the same command again when that has ended; `provision list` shows what is being built"
        return StoreError(claims.describe_work(claim.says), evidence=[f"lock: {path}"], hint=hint, kind="locked")
    return StoreError(
        "the lock cannot be taken at once: there is a file at its path that is not a lock",
        evidence=[f"lock: {path}", f"file: {claim.place}"],
        hint=f"`{bash('rm -r %s', str(claim.place))}`, then run the same command again",
        kind="locked",
    )


def unwritable(path: Path, error: OSError) -> StoreError:
    """The error for a lock that cannot be written."""
    if not isinstance(error, PermissionError):
        return disk_error(error, path.parent)
    folder, status = path.parent, path.parent.stat()
    return StoreError(
        f"`{folder}` cannot be written: {error.strerror}",
        evidence=[f"owner: {user_name(status.st_uid)}, mode {stat.S_IMODE(status.st_mode):o}"],
        hint=f"as `{user_name(status.st_uid)}` or root: `chmod u+rwx {shlex.quote(str(folder))}`; to share the root with a group "
        "of admins, set `files.group` in the site profile",
    )
