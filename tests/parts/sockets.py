"""Which TCP ports a process and all that it started listen on, read from /proc while they run.

Real: the kernel's tables. What is polled can miss a port that is open for less than the pause between two looks.
"""

from __future__ import annotations

import ipaddress
import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LISTEN = "0A"
PAUSE_S = 0.05


@dataclass(frozen=True, slots=True, order=True)
class Listener:
    """A listening socket in a process. Processes that inherited one socket have the same `inode`."""

    program: str
    pid: int
    address: str
    port: int
    inode: str

    @property
    def reachable(self) -> bool:
        """Whether another machine can connect."""
        address = ipaddress.ip_address(self.address)
        mapped = getattr(address, "ipv4_mapped", None)
        return not (mapped or address).is_loopback


@dataclass(frozen=True, slots=True)
class Watched:
    """All that was seen: the listeners, the programs by process, and how often it was looked."""

    listeners: frozenset[Listener]
    programs: dict[int, str]
    looks: int


def watch(process: subprocess.Popen[str]) -> Watched:
    """Look until the process has ended."""
    known, programs, listeners, looks = {process.pid}, dict[int, str](), set[Listener](), 0
    while process.poll() is None:
        # A process whose parent ended keeps its place: it was seen below it before.
        known |= descendants(known)
        for pid in known:
            try:
                programs[pid] = Path(f"/proc/{pid}/comm").read_text().strip()
                listeners |= set(listeners_of(pid, programs[pid]))
            except OSError:  # it ended meanwhile
                continue
        looks += 1
        time.sleep(PAUSE_S)
    return Watched(frozenset(listeners), programs, looks)


def descendants(pids: set[int]) -> set[int]:
    """All processes that these started, and those that they started."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            # The name of the program, in parentheses, may contain anything.
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    below = set(pids)
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    return below - pids


def listeners_of(pid: int, program: str) -> Iterator[Listener]:
    """The listening sockets of one process, in its own network namespace."""
    links = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            links.append(str(link.readlink()))
        except OSError:  # closed meanwhile
            continue
    inodes = {found[1] for link in links if (found := re.fullmatch(r"socket:\[(\d+)\]", link))}
    for table in ("tcp", "tcp6") if inodes else ():
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *rest = line.split()
            if state == LISTEN and rest[5] in inodes:
                address, _, port = local.partition(":")
                yield Listener(program, pid, _address(address), int(port, 16), rest[5])


def _address(text: str) -> str:
    """The address from the kernel's table: words of four bytes, each in the byte order of this (little-endian) machine."""
    words = [bytes.fromhex(text[start : start + 8])[::-1] for start in range(0, len(text), 8)]
    return str(ipaddress.ip_address(b"".join(words)))
