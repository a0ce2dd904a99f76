"""Locks: one process at a time. The lock of a process that has ended is taken over, and so is a file that is not a claim.

A lock is held by the last claim of a chain. The first claim is the file `NAME`. If its holder is dead, the one who takes over
writes `NAME.KEY`, where KEY names the dead claim; a file system makes such a file for one process only. Then the new claim is
renamed to `NAME`, if the folder lets us: an admin cannot always replace what another one left, and need not.
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
from provision.machine.root.claims import BEAT_S, MARK, Claim, is_there, judge_here, read_claim, same_file, write_claim
from provision.machine.root.shared_root import SharedRoot, user_name
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
        successor = successor_of(self.path, str(self.says["token"]))
        if same_file(self.path, self.descriptor):
            mine = claims.content_of(self.says)
            if os.pread(self.descriptor, claims.MOST, 0) != mine:
                os.ftruncate(self.descriptor, 0)
                os.pwrite(self.descriptor, mine, 0)
            os.utime(self.descriptor)
        elif not is_there(successor):
            self._claim_again()
        if is_there(successor):
            self.lost_to = describe_claim(read_claim(self.shared, successor))

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
            if same_file(self.path, self.descriptor) and not is_there(successor_of(self.path, str(self.says["token"]))):
                self.path.unlink()
        with contextlib.suppress(OSError):
            os.close(self.descriptor)


def holder(shared: SharedRoot, path: Path) -> JSON | None:
    """The holder of the lock at `path`, or None if it is free. This only looks, and does not wait for a beat.

    A claim of another machine counts if it was not silent for long, by the clocks of both machines.
    """
    claim = last_claim(shared, path)[1]
    if claim is None or not claim.says:
        return None
    lives = judge_here(claim)[0]
    if lives is None:
        lives = time.time() - claim.beat[1] / 1e9 < claims.SILENCE_S
    return dict(claim.says) if lives else None


def is_left(shared: SharedRoot, path: Path) -> bool:
    """Whether a process of this machine that has ended left its claim at `path`, and this one may remove it."""
    claim = last_claim(shared, path)[1]
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
    places, claim = last_claim(shared, path)
    if claim is not None and claim.key == says["token"]:
        with contextlib.suppress(OSError):
            places[-1].unlink()


def take(shared: SharedRoot, path: Path, says: JSON, waiting: Waiting, *, wait: bool) -> Lock:
    """Take the lock as soon as it is free, or its holder is dead.

    Raises:
        StoreError: another process holds it and `wait` is false, or the claim cannot be written.
    """
    watch = Watch(waiting=waiting, wait=wait)
    while True:
        places, claim = last_claim(shared, path)
        place = places[-1]
        try:
            if claim is None:
                descriptor = write_claim(place, says)
                if descriptor is not None:
                    return Lock(place, says, descriptor, shared)
                continue
            why = watch.why_dead(claim)
            if why is not None:
                successor = successor_of(place, claim.key)
                descriptor = write_claim(successor, says)
                if descriptor is None:
                    continue
                now = read_claim(shared, place)
                if now is None or now.key != claim.key:  # another process was faster, and has renamed its claim
                    os.close(descriptor)
                    successor.unlink(missing_ok=True)
                    continue
                whose = f"the lock of {describe_claim(claim)}" if claim.says else f"the lock `{place}`"
                waiting.say(f"took over {whose}: {why}")
                return Lock(renamed(successor, places), says, descriptor, shared)
        except OSError as error:
            raise unwritable(path, error) from error
        if not wait and watch.lives:
            raise StoreError(
                f"this is already being built: {describe_claim(claim)}",
                evidence=[f"lock: {path}"],
                hint="wait for it (omit `--no-wait`), or end that process",
                kind="locked",
            )
        waiting.looks()
        time.sleep(POLL_S)


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

    def why_dead(self, claim: Claim) -> str | None:
        """Why the holder of this claim is dead; None as long as it may live."""
        now = time.monotonic()
        if claim.key != self.key:
            self.key, self.beat, self.looked = claim.key, claim.beat, now
            self.lives, self.reported, self.silent_s, self.asked_s = False, False, 0.0, -ASK_SCHEDULER_S
        here, why = judge_here(claim)
        if here is False:
            return self._without_children(claim, why)
        if here is None and claim.beat == self.beat:
            self.silent_s += min(now - self.looked, MOST_COUNTED_S)
        else:
            self.silent_s, self.lives = 0.0, True
        self.beat, self.looked = claim.beat, now
        if not claim.says:
            return "the file is not a lock" if self.silent_s >= claims.NONSENSE_S else None
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


def last_claim(shared: SharedRoot, path: Path) -> tuple[list[Path], Claim | None]:
    """The claim that holds the lock, and the places of all claims up to it; None if the lock is free."""
    places, claim = [path], read_claim(shared, path)
    while claim is not None:
        successor = successor_of(places[-1], claim.key)
        if not is_there(successor):
            return places, claim
        places, claim = [*places, successor], read_claim(shared, successor)
        if claim is None:  # it was released or renamed between the two looks
            places, claim = [path], read_claim(shared, path)
    return [path], None


def successor_of(place: Path, key: str) -> Path:
    """Where the claim is that takes over from the claim with this key."""
    return place.with_name(f"{place.name}.{key}")


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


def describe_claim(claim: Claim | None) -> str:
    """The holder of a claim as a phrase."""
    return describe_holder(dict(claim.says) if claim else {})


def describe_holder(holder: JSON) -> str:
    """The holder of a lock as a phrase: `alice on n1, process 123, job 45, since …`."""
    job = f", job {holder['job']}" if holder.get("job") else ""
    place = f"{holder.get('host', 'an unknown host')}, process {holder.get('pid', '?')}{job}"
    return f"{holder.get('user', 'an unknown user')} on {place}, since {holder.get('since', 'an unknown time')}"
