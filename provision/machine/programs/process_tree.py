"""The processes that a program started, and a signal to all of them. Linux lists processes in `/proc`."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple


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
    try:
        rows = [row for row in map(_read, filter(str.isdigit, os.listdir("/proc"))) if row]  # noqa: PTH208
    except OSError:
        return set()
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
        row = _read(str(process.pid))
        if row and row.start_time == process.start_time and row.group != group:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(row.pid, number)


def _read(pid: str) -> Process | None:
    """The process with this number, or None."""
    try:
        # The program's name, in parentheses, can contain spaces and parentheses.
        rest = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return Process(int(pid), int(rest[1]), int(rest[2]), int(rest[3]), rest[19])
