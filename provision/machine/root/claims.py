"""Claims: the files that say which process holds a lock, and whether that process still lives.

A claim is believed as long as its process lives. On the machine of the process, the kernel knows that. On another machine the
claim has to beat: its holder sets the time of the file every `BEAT_S` seconds. Who waits compares these times with each
other and counts the seconds of its own clock, so wrong clocks change nothing. No claim is a lock of the kernel: those do not
work on every shared file system (Lustre without `flock`, NFS), and on NFS they can outlive the node that held them.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from provision.machine.disk import JSON, json_object
from provision.machine.programs.process_tree import is_running, start_of
from provision.machine.root.shared_root import SharedRoot
from provision.machine.trusted_files import read_regular
from provision.machine.who_may_write import user_name
from provision.schedulers import job_here, restarts_here

BEAT_S = 2.0
# Of a claim on another machine, and of a file that is not a claim: its holder may be writing it.
SILENCE_S = 60.0
NONSENSE_S = 3 * BEAT_S
# The key of everything that is not a claim: if it depended on the file, who changes that all the time would not be waited out.
OTHER = "x"
# A claim has some hundred bytes.
MOST = 1 << 16
# The programs that a holder starts have its token in this variable, so that they are found when the holder was killed.
MARK = "PROVISION_LOCK"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What is at the path of a lock. `says` is empty if that is not a claim that an admin of the site wrote."""

    key: str
    """Names this claim: its token, or `OTHER`."""
    beat: tuple[int, int]
    """Changes when the holder beats."""
    says: Mapping[str, object]


def make_claim(does: JSON) -> JSON:
    """The claim of this process. `does` is added to it."""
    return {
        "token": os.urandom(8).hex(),
        "user": user_name(os.geteuid()),
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "started": start_of(os.getpid()),
        "kernel": this_kernel(),
        "job": job_here(os.environ),
        "restarts": restarts_here(os.environ),
        "since": utc_now(),
        **does,
    }


def read_claim(shared: SharedRoot, path: Path) -> Claim | None:
    """What is at this path; None if nothing is."""
    says: JSON = {}
    try:
        # Opening the file makes a client of NFS ask the server; a mere look may be answered from its memory.
        content, status = read_regular(path, limit=MOST, follow=False)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        try:
            status = path.lstat()
        except OSError:
            return None
    else:
        with contextlib.suppress(ValueError):
            said = json_object(content)
            token = said.get("token")
            if isinstance(token, str) and token.isalnum():
                says = said
    key = str(says["token"]) if says else OTHER
    return Claim(key=key, beat=(status.st_ino, status.st_mtime_ns if says else status.st_ctime_ns), says=says)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """What is at the path of a lock, and behind it."""

    places: Sequence[Path]
    """Where the claims are, and the files that are not claims."""
    claim: Claim | None
    """The last claim that an admin wrote: the lock is held by its process, if that lives."""
    place: Path
    """Where that claim is."""
    other: tuple[int, int] | None
    """What the last file has instead of a beat, if it is not a claim."""
    next: Path
    """Where the next claim is written."""


def read_chain(shared: SharedRoot, path: Path) -> Chain:
    """The claims of a lock, and where the next one belongs."""
    places: list[Path] = []
    last, place, at, other = None, path, path, None
    while (claim := read_claim(shared, place)) is not None:
        places.append(place)
        last, at, other = (claim, place, None) if claim.says else (last, at, claim.beat)
        place = successor_of(place, claim.key)
    return Chain(places=places, claim=last, place=at, other=other, next=place)


def successor_of(place: Path, key: str) -> Path:
    """Where the claim is that takes over from the claim with this key."""
    return place.with_name(f"{place.name}.{key}")


def write_claim(path: Path, says: JSON) -> int | None:
    """Write a claim to a path at which nothing is; its descriptor, or None if something is there.

    Raises:
        OSError: it cannot be written; nothing is left behind.
    """
    with _undisturbed():
        try:
            # The file system lets one process only make a file in this way, NFS included.
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        except FileExistsError:
            return None
        try:
            os.fchmod(descriptor, 0o644)
            os.pwrite(descriptor, content_of(says), 0)
        except OSError:
            os.close(descriptor)
            path.unlink(missing_ok=True)
            raise
        return descriptor


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Let signals that end this process wait: a claim is whole, and known by its token, or it is not there."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGHUP, signal.SIGINT, signal.SIGTERM))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def content_of(says: JSON) -> bytes:
    """The content of the file of a claim."""
    return json.dumps(says).encode()


def judge_here(claim: Claim) -> tuple[bool | None, str]:
    """Whether the holder of a claim lives, as this machine knows it, with the reason if it does not.

    None: it is on another machine, or this one does not show whether the process is still the same.
    """
    says, pid = claim.says, claim.says.get("pid")
    if says.get("kernel") == this_kernel() and isinstance(pid, int):
        if not is_running(pid):
            return False, f"process {pid} has ended"
        began = start_of(pid)
        if began is not None and says.get("started") is not None:
            same = began == says["started"]
            return same, "" if same else f"process {pid} is another one now"
    mine, theirs = restarts_here(os.environ), says.get("restarts")
    job = job_here(os.environ)
    if job is not None and says.get("job") == job and isinstance(theirs, int) and theirs < mine:
        return False, f"job {job} was restarted"
    return None, ""


def this_kernel() -> str | None:
    """What names this machine since its start, and the process numbers that are valid here: a container has its own."""
    boot = boot_id()
    try:
        return boot and f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return None


def boot_id() -> str | None:
    """What names this machine since its start."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    except OSError:
        return None


def same_file(path: Path, descriptor: int) -> bool:
    """Whether this path still leads to the open file."""
    try:
        status = path.lstat()
    except OSError:
        return False
    mine = os.fstat(descriptor)
    return stat.S_ISREG(status.st_mode) and (status.st_dev, status.st_ino) == (mine.st_dev, mine.st_ino)


def utc_now() -> str:
    """The time, ISO 8601 in UTC: `2026-11-22T01:02:03+00:00`."""
    return time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())
