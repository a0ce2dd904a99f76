"""Claims: the files that say which process holds a lock, what it does, and since when."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from provision.machine.files.disk import JSON, json_object
from provision.machine.files.trusted_files import read_regular
from provision.machine.files.who_may_write import user_name
from provision.machine.programs.process_tree import is_running, start_of, this_kernel
from provision.schedulers import job_here, restarts_here

# A claim has some hundred bytes.
MOST = 1 << 16
# The key of everything that is not a claim.
OTHER = "x"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What is at the path of a lock: `says` is empty if it is not a claim, `key` is its token, `beat` changes while it beats."""

    place: Path
    key: str
    beat: int
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


def read_claim(place: Path) -> Claim | None:
    """What is at this path; None if nothing is."""
    try:
        # Opening the file makes a client of NFS ask the server; a mere look may be answered from its memory.
        content, status = read_regular(place, limit=MOST, follow=False)
        says = json_object(content)
        token = says.get("token")
        if isinstance(token, str) and token.isalnum():
            return Claim(place=place, key=token, beat=status.st_mtime_ns, says=says)
    except (OSError, ValueError):
        pass
    return Claim(place=place, key=OTHER, beat=0, says={}) if os.path.lexists(place) else None


def judge_here(says: Mapping[str, object]) -> tuple[bool | None, str]:
    """Whether the holder of a claim lives, as this machine knows it, with the reason if it does not.

    None: it is on another machine, or this one does not show whether the process is still the same.
    """
    pid = says.get("pid")
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


DONE = {"builds": "built", "changes": "changed", "publishes": "published", "removes": "removed", "upgrades": "upgraded"}


def describe_work(holder: Mapping[str, object]) -> str:
    """What the holder of a lock does, as a sentence: `… is being published by alice on n1, process 123, since …`."""
    verb, _, what = str(holder.get("does", "")).partition(" ")
    if verb in DONE and what:
        return f"{what} is being {DONE[verb]} by {describe_holder(holder)}"
    return f"another process holds the lock: {describe_holder(holder)}"


def describe_holder(holder: Mapping[str, object]) -> str:
    """The holder of a lock as a phrase: `alice on n1, process 123, job 45, since …`."""
    job = f", job {holder['job']}" if holder.get("job") else ""
    place = f"{holder.get('host', 'an unknown host')}, process {holder.get('pid', '?')}{job}"
    return f"{holder.get('user', 'an unknown user')} on {place}, since {holder.get('since', 'an unknown time')}"


def utc_now() -> str:
    """The time, ISO 8601 in UTC: `2026-11-22T01:02:03+00:00`."""
    return time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())
