"""Locks: one process at a time. The lock of a process that has ended is taken over, and so is a file that is not a claim.

A lock is held by the last claim of a chain that an admin wrote. The first one is the file `NAME`. If its holder is dead, the one
who takes over writes `NAME.KEY`, where KEY names the dead claim; a file system makes such a file for one process only. Then the
new claim is renamed to `NAME`, if the folder lets us: an admin cannot always replace what another one left, and need not. Files
that are not claims have one key, whatever is in them: a user who is not an admin can put them in the way, but takes no lock.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import stat
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from provision.errors import StoreError
from provision.machine.disk import JSON, disk_error
from provision.machine.programs.process_tree import end_marked
from provision.machine.root import claims
from provision.machine.root.claims import (
    BEAT_S,
    MARK,
    Chain,
    Claim,
    judge_here,
    read_chain,
    read_claim,
    same_file,
    successor_of,
    write_claim,
)
from provision.machine.root.shared_root import SharedRoot
from provision.machine.who_may_write import user_name
from provision.model.quoting import bash
from provision.wording import count

POLL_S = 0.3
# A longer pause between two looks, of this process or of the file system, does not count as silence of the holder.
MOST_COUNTED_S = 2.0
ASK_SCHEDULER_S = 15.0


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
class Lock:
    """A lock that this process holds. `path` is where its claim is."""

    path: Path
    says: JSON
    descriptor: int
    shared: SharedRoot
    lost_to: str | None = None
    stop: threading.Event = field(default_factory=threading.Event)

    @property
    def environ(self) -> Mapping[str, str]:
        """The variable that marks the programs that are started under this lock."""
        return {MARK: str(self.says["token"])}

    def refuse_lost(self) -> None:
        """Raise if another process has taken the lock: this one was stopped for so long that it counted as dead.

        Raises:
            StoreError: of kind `locked`.
        """
        if self.lost_to is not None:
            raise StoreError(
                f"another process took the lock of this one: {self.lost_to}",
                evidence=[f"lock: {self.path}", "this process did not run for a while, or its lock was removed"],
                hint="run the same command again: it waits for that process",
                kind="locked",
            )

    def beat(self) -> None:
        """Show that this process lives. Repairs the claim if it was removed or overwritten."""
        successor = read_chain(self.shared, self._next).claim
        if successor is not None:
            self.lost_to = describe_claim(successor)
        elif same_file(self.path, self.descriptor):
            mine = claims.content_of(self.says)
            if os.pread(self.descriptor, claims.MOST, 0) != mine:
                os.ftruncate(self.descriptor, 0)
                os.pwrite(self.descriptor, mine, 0)
            os.utime(self.descriptor)
        else:
            self._claim_again()

    @property
    def _next(self) -> Path:
        """Where the one who takes this lock over writes its claim."""
        return successor_of(self.path, str(self.says["token"]))

    def _claim_again(self) -> None:
        """Claim the lock again after another process or user removed or replaced the file."""
        while True:
            descriptor = write_claim(self.path, self.says)
            if descriptor is not None:
                os.close(self.descriptor)
                self.descriptor = descriptor
                return
            claim = read_claim(self.shared, self.path)
            if claim is not None and claim.says:
                self.lost_to = describe_claim(claim)
                return
            if claim is not None:
                self.path = successor_of(self.path, claim.key)

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
        """Remove the claim, unless another process has taken the lock. It can be called again if a signal interrupted it."""
        self.stop.set()
        with contextlib.suppress(OSError):
            if same_file(self.path, self.descriptor) and read_chain(self.shared, self._next).claim is None:
                self.path.unlink()
        with contextlib.suppress(OSError):
            os.close(self.descriptor)


def holder(shared: SharedRoot, path: Path) -> JSON | None:
    """The holder of the lock at `path`, or None if it is free. This only looks, and does not wait for a beat.

    A claim of another machine counts if it was not silent for long, by the clocks of both machines.
    """
    claim = read_chain(shared, path).claim
    if claim is None:
        return None
    lives = judge_here(claim)[0]
    if lives is None:
        lives = time.time() - claim.beat[1] / 1e9 < claims.SILENCE_S
    return dict(claim.says) if lives else None


def is_left(shared: SharedRoot, path: Path) -> bool:
    """Whether a process of this machine that has ended left its claim at `path`, and this one may remove it."""
    claim = read_chain(shared, path).claim
    return claim is not None and judge_here(claim)[0] is False and os.access(path.parent, os.W_OK)


@contextlib.contextmanager
def held(
    shared: SharedRoot, path: Path, does: JSON, waiting: Waiting | None = None, *, wait: bool = True
) -> Iterator[Lock]:
    """Hold the lock at `path`. If another process holds it, wait for that process, or fail if `wait` is false.

    Raises:
        StoreError: another process holds the lock, or has taken it meanwhile, or the claim cannot be written.
    """
    shared.make(path.parent)
    says, lock, beating = claims.make_claim(does), None, None
    try:
        lock = take(shared, path, says, waiting or Waiting(), wait=wait)
        beating = threading.Thread(target=lock.keep_beating, name="lock", daemon=True)
        beating.start()
        yield lock
    except KeyboardInterrupt:
        if lock is not None:
            lock.refuse_lost()
        raise
    finally:
        try:
            _end(shared, path, says, lock, beating)
        except BaseException:  # a signal that came while the lock was released; a second one is ignored
            _end(shared, path, says, lock, beating)
            raise


def _end(shared: SharedRoot, path: Path, says: JSON, lock: Lock | None, beating: threading.Thread | None) -> None:
    """Release the lock, or withdraw its claim if it was not taken."""
    if lock is None:
        withdraw(shared, path, says)
        return
    lock.stop.set()
    if beating is not None and beating.is_alive():
        beating.join()
    lock.release()


def withdraw(shared: SharedRoot, path: Path, says: JSON) -> None:
    """Remove this claim if it was written: a signal ends its process before it has the lock in hand."""
    chain = read_chain(shared, path)
    if chain.claim is not None and chain.claim.key == says["token"]:
        with contextlib.suppress(OSError):
            chain.place.unlink()


def take(shared: SharedRoot, path: Path, says: JSON, waiting: Waiting, *, wait: bool) -> Lock:
    """Take the lock as soon as it is free, or its holder is dead.

    Raises:
        StoreError: another process holds it and `wait` is false, or the claim cannot be written.
    """
    watch = Watch(waiting=waiting, wait=wait)
    while True:
        chain = read_chain(shared, path)
        why = watch.why_free(chain)
        if why is not None:
            try:
                descriptor = write_claim(chain.next, says)
                if descriptor is not None and read_chain(shared, path).place != chain.next:
                    os.close(descriptor)  # another process was faster, and has renamed its claim
                    chain.next.unlink(missing_ok=True)
                elif descriptor is not None:
                    if why:
                        whose = f"the lock of {describe_claim(chain.claim)}" if chain.claim else f"the lock `{path}`"
                        waiting.say(f"took over {whose}: {why}")
                    return Lock(renamed(chain.next, chain.places), says, descriptor, shared)
            except OSError as error:
                raise unwritable(path, error) from error
        elif not wait and watch.lives:
            raise refused(path, chain.claim)
        else:
            waiting.looks()
            time.sleep(POLL_S)


def refused(path: Path, claim: Claim | None) -> StoreError:
    """The error for a lock that another process holds, or at whose path another user writes."""
    evidence = [f"lock: {path}"]
    if claim is not None:
        hint = "run the same command again when that has ended; `provision list` shows what is being built"
        return StoreError(describe_work(dict(claim.says)), evidence=evidence, hint=hint, kind="locked")
    with contextlib.suppress(OSError):
        evidence.append(f"owner: {user_name(path.lstat().st_uid)}")
    return StoreError(
        "the lock cannot be taken: a file that is not a lock changes at its path",
        evidence=evidence,
        hint=f"as its owner or root: `{bash('rm -r %s', str(path))}`, then run the same command again",
        kind="locked",
    )


@dataclass(slots=True, kw_only=True)
class Watch:
    """Watches the claim of another process, until it is known to be dead. `lives` is whether it was seen to live."""

    waiting: Waiting
    wait: bool
    key: str = ""
    beat: tuple[int, int] = (0, 0)
    lives: bool = False
    reported: bool = False
    silent_s: float = 0.0
    asked_s: float = 0.0
    looked: float = 0.0
    blocked: tuple[int, int] | None = None
    blocked_s: float = 0.0

    def why_free(self, chain: Chain) -> str | None:
        """Why the lock can be taken, empty if nothing is there; None as long as its holder may live."""
        now = time.monotonic()
        passed, self.looked = min(now - self.looked, MOST_COUNTED_S), now
        why = self._why_dead(chain.claim, passed) if chain.claim is not None else ""
        if chain.other is None or why is None:
            return why
        # The seconds count for the path, not for the file: it may be another one each time.
        self.blocked_s += passed if self.blocked is not None else 0.0
        self.lives, self.blocked = self.blocked not in (None, chain.other), chain.other
        return (why or "the file is not a lock") if self.blocked_s >= claims.NONSENSE_S else None

    def _why_dead(self, claim: Claim, passed: float) -> str | None:
        """Why the holder of this claim is dead; None as long as it may live. `passed`: the seconds since the last look."""
        if claim.key != self.key:
            self.key, self.beat = claim.key, claim.beat
            self.lives, self.reported, self.silent_s, self.asked_s, passed = False, False, 0.0, -ASK_SCHEDULER_S, 0.0
        here, why = judge_here(claim)
        if here is False:
            return self._without_children(claim, why)
        if here is None and claim.beat == self.beat:
            self.silent_s += passed
        else:
            self.silent_s, self.lives, self.blocked, self.blocked_s = 0.0, True, None, 0.0
        self.beat = claim.beat
        if self.silent_s >= claims.SILENCE_S:
            return f"no sign of life for {claims.SILENCE_S:.0f} s"
        if here is None and self.silent_s >= 2 * BEAT_S and self._job_ended(claim):
            return f"job {claim.says['job']} has ended"
        if self.wait and not self.reported and (self.lives or self.silent_s > BEAT_S):
            self.reported = True
            self.waiting.waits(dict(claim.says))
        return None

    def _job_ended(self, claim: Claim) -> bool:
        """Ask the scheduler from time to time whether the job of a silent holder has ended."""
        job = claim.says.get("job")
        if not isinstance(job, str) or self.silent_s - self.asked_s < ASK_SCHEDULER_S:
            return False
        self.asked_s = self.silent_s
        ended = self.waiting.ended(job)
        self.lives = self.lives or ended is False
        return bool(ended)

    def _without_children(self, claim: Claim, why: str) -> str | None:
        """End what a dead holder on this machine left; None as long as something of it runs."""
        number, left = end_marked(MARK, claim.key)
        if left:
            return None
        return f"{why}; ended {count(number, 'process', 'processes')} that it left" if number else why


def renamed(successor: Path, dead: Sequence[Path]) -> Path:
    """Put a claim in the place of the first dead one that can be replaced, and remove the others; where it is afterwards.

    What another admin left may have to stay.
    """
    for number, place in enumerate(dead):
        try:
            successor.replace(place)
        except OSError:
            continue
        for other in reversed(dead[number + 1 :]):
            with contextlib.suppress(OSError):
                other.unlink()
        return place
    return successor


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


DONE = {"builds": "built", "changes": "changed", "publishes": "published", "removes": "removed", "upgrades": "upgraded"}


def describe_work(holder: JSON) -> str:
    """What the holder of a lock does, as a sentence: `… is being published by alice on n1, process 123, since …`."""
    verb, _, what = str(holder.get("does", "")).partition(" ")
    if verb in DONE and what:
        return f"{what} is being {DONE[verb]} by {describe_holder(holder)}"
    return f"another process holds the lock: {describe_holder(holder)}"


def describe_claim(claim: Claim | None) -> str:
    """The holder of a claim as a phrase."""
    return describe_holder(dict(claim.says) if claim else {})


def describe_holder(holder: JSON) -> str:
    """The holder of a lock as a phrase: `alice on n1, process 123, job 45, since …`."""
    job = f", job {holder['job']}" if holder.get("job") else ""
    place = f"{holder.get('host', 'an unknown host')}, process {holder.get('pid', '?')}{job}"
    return f"{holder.get('user', 'an unknown user')} on {place}, since {holder.get('since', 'an unknown time')}"
