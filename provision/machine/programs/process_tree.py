"""The processes that a program started, a signal to all of them, and those that use a folder. Linux lists all in `/proc`."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Collection, Sequence
from pathlib import Path, PurePath
from typing import NamedTuple

# How long the start of a program is waited for that another one has just called: milliseconds, if its disk answers.
STARTS_S = 1.0
# Fields of /proc/PID/stat, counted from the one after the name of the program: proc_pid_stat(5).
STATE, PARENT, GROUP, SESSION, START_TIME, ENV_END = 0, 1, 2, 3, 19, 48


class Process(NamedTuple):
    """A process; the time of its start distinguishes it from a later one with the same number."""

    pid: int
    parent: int
    group: int
    session: int
    start_time: str


def started_by(pid: int) -> set[Process]:
    """The processes in the session of this process, and those that it or one of them started; empty without `/proc`.

    A process in a session of its own is found as long as its parent lives.
    """
    rows = [row for row in map(_read, _numbers()) if row]
    children: dict[int, list[Process]] = {}
    for row in rows:
        children.setdefault(row.parent, []).append(row)
    found: set[Process] = set()
    new = [row for row in rows if pid in (row.parent, row.session) and row.pid != pid]
    while new:
        row = new.pop()
        if row not in found:
            found.add(row)
            new += children.get(row.pid, [])
    return found


def send(number: signal.Signals, group: int, started: Collection[Process]) -> None:
    """Send a signal to a process group, and to those of the processes that run on outside of it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
    for process in started:
        row = _read(process.pid)
        if row and row.start_time == process.start_time and row.group != group:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(row.pid, number)


def is_running(pid: int) -> bool:
    """Whether there is a process with this number, of any user. A zombie, which has ended, does not count."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return _stat(pid)[:1] != ["Z"]


def start_of(pid: int) -> str | None:
    """When a process started, as the kernel counts; None if it does not exist or is hidden from us."""
    row = _read(pid)
    return row.start_time if row else None


def end_marked(name: str, value: str, patience_s: float = 3) -> tuple[int, int]:
    """End the processes that have this variable in their environment: those that a killed process of ours left.

    Returns how many there were, and how many still run. The processes of other users are not seen.
    """
    first = left = marked_processes(name, value)
    for number in (signal.SIGTERM, signal.SIGKILL):
        if not left:
            break
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        end_at = time.monotonic() + patience_s
        while left and time.monotonic() < end_at:
            time.sleep(0.05)
            left = {pid for pid in left if is_running(pid)}
        left |= marked_processes(name, value)  # what they started meanwhile
    return len(first), len(left)


def marked_processes(name: str, value: str = "") -> set[int]:
    """The processes of this user that have this variable in their environment, with this value or with any."""
    wanted, found = f"{name}={value}".encode(), set()
    for pid in _numbers():
        environ = _environ(pid).split(b"\0")
        marked = wanted in environ if value else any(part.startswith(wanted) for part in environ)
        if marked and pid != os.getpid() and is_running(pid):
            found.add(pid)
    return found


def processes_below(folders: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The processes of this machine that have a file below each of these folders open, mapped, or as working folder.

    Only those that we may look at: all of them for root.
    """
    found: dict[str, list[str]] = {folder: [] for folder in folders}
    top = os.path.commonpath(folders) if folders else "/"
    tops = {top, os.path.realpath(top)}  # the kernel has no links in its paths
    for pid in _numbers() if folders else ():
        if pid != os.getpid():
            lines = _paths_of(Path(f"/proc/{pid}")).split("\n")
            paths = {top + line.partition(place)[2] for place in tops for line in lines if place in line}
            for folder in {str(parent) for path in paths for parent in (path, *PurePath(path).parents)} & found.keys():
                found[folder].append(f"process {pid} of this machine uses it")
    return {folder: tuple(lines) for folder, lines in found.items()}


def _paths_of(process: Path) -> str:
    """The paths that a process uses, in one text."""
    parts = []
    for link in ("exe", "cwd"):
        with contextlib.suppress(OSError):
            parts.append(str((process / link).readlink()))
    with contextlib.suppress(OSError, UnicodeDecodeError):
        parts.append((process / "maps").read_text())
    with contextlib.suppress(OSError):
        for opened in (process / "fd").iterdir():
            with contextlib.suppress(OSError):
                parts.append(str(opened.readlink()))
    with contextlib.suppress(OSError):
        # A virtual environment's python is a link: only the first word of the command names the environment.
        parts.append((process / "cmdline").read_bytes().split(b"\0")[0].decode(errors="replace"))
    return "\n".join(parts)


def _numbers() -> list[int]:
    """The numbers of all processes that can be seen; none without `/proc`."""
    try:
        return [int(text) for text in os.listdir("/proc") if text.isdigit()]  # noqa: PTH208
    except OSError:
        return []


def _environ(pid: int) -> bytes:
    """The environment that a process started with; empty if it has ended, or is another user's."""
    end_at = time.monotonic() + STARTS_S
    while _starts(pid) and time.monotonic() < end_at:
        time.sleep(0.01)
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def _starts(pid: int) -> bool:
    """Whether a program is between `exec` and its first instruction: it can be seen, and its environment not yet.

    The kernel closes the descriptors of the old program before it writes the environment of the new one, so the parent goes
    on meanwhile (Linux, fs/exec.c and fs/binfmt_elf.c).
    """
    try:
        Path(f"/proc/{pid}/exe").readlink()  # a thread of the kernel has none
    except OSError:
        return False
    return _stat(pid)[ENV_END : ENV_END + 1] == ["0"]


def _stat(pid: int) -> list[str]:
    """What the kernel says of a process, from its state on; empty if there is none, or it is hidden from us."""
    try:
        # The program's name, in parentheses, can contain spaces and parentheses.
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def _read(pid: int) -> Process | None:
    """The process with this number, or None."""
    fields = _stat(pid)
    if not fields:
        return None
    return Process(pid, int(fields[PARENT]), int(fields[GROUP]), int(fields[SESSION]), fields[START_TIME])


def this_kernel() -> str | None:
    """What names this machine since its start, and the process numbers that are valid here: a container has its own."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
        return boot and f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return None
