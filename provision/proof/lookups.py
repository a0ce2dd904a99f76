"""Counts the path look-ups and bytes of one process on the shared file system, from the lines of `strace`. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from provision.model.verdict import Reads

TRACED = "file,read,pread64,mmap,setns"
"""The system calls that are traced: those with a path, those that read, and the one that joins a namespace."""
# With `-y`, strace writes the path of a descriptor: `openat(AT_FDCWD</>, "/a", O_RDONLY) = 3</a>`. With an empty path the
# descriptor itself is meant, and nothing is looked up.
WITH_PATH = re.compile(r'(\d+) +\w+\((?:(?:AT_FDCWD|\d+)(?:<([^>]*)>)?, )?"((?:[^"\\]|\\.)+)"')
READ = re.compile(r"(\d+) +(?:p?read(?:64)?)\(\d+<([^>]*)>")
READ_ON = re.compile(r"(\d+) +<\.\.\. p?read(?:64)? resumed>")
# The first mapping of a library spans all of it; its parts are then mapped over it, at a fixed address.
MAPPED = re.compile(r"\d+ +mmap\(NULL, (\d+), [^)]*, \d+<([^>]*)>, ")
JOINED = re.compile(r"(\d+) +setns\([^)]*CLONE_NEWNS\) += 0")
RESULT = re.compile(r"\) += (\d+)$")
# What every node has on a disk or in memory of its own.
LOCAL = ("usr", "lib", "lib32", "lib64", "bin", "sbin", "etc", "proc", "sys", "dev", "run", "tmp", "var")
RECORDS = "/.provision/"


def count_reads(lines: Iterable[str], shared: Sequence[str], ranks_per_node: int, *, joins: bool) -> Reads | None:
    """What a process looked up and read below the `shared` folders; None if it was not traced.

    With `joins`, `provision-deliver` starts the process. What that script starts before works once for the node. What the
    process finds in the image, after it has joined the namespace of the node, is on its node; only the records beside the image
    are not. None too if it joins no namespace: a program of the site mounts images in a way that is not known here.
    """
    lookups, size, elsewhere = Counter[str](), Counter[str](), 0
    first, joined, waits = None, False, dict[str, str]()
    for line in lines:
        process = line.split(" ", 1)[0]
        first = first or process

        def is_shared(path: str) -> bool:
            below = any(path == folder or path.startswith(f"{folder}/") for folder in shared)
            return below and (not joined or RECORDS in path)  # noqa: B023 # it is called here only

        read = READ.match(line)
        if read or READ_ON.match(line):
            waits[process] = read[2] if read else waits.get(process, "")
            result = RESULT.search(line)
            size[process] += int(result[1]) if result and is_shared(waits[process]) else 0
        elif match := WITH_PATH.match(line):
            path = match[3] if match[3].startswith("/") else f"{match[2] or ''}/{match[3]}"
            lookups[process] += is_shared(path)
            local = path.split("/")[1] in LOCAL or any(path.startswith(f"{folder}/") for folder in shared)
            elsewhere += process == first and not local and path.count("/") > 1
        elif match := MAPPED.match(line):
            size[process] += int(match[1]) * is_shared(match[2])
        elif match := JOINED.match(line):
            joined = joined or process == first
    if first is None or joined is not joins or not sum(lookups.values()):
        return None

    def of_node(figures: Counter[str]) -> tuple[int, int]:
        whole, own = sum(figures.values()), figures[first] if joined else sum(figures.values())
        return whole, whole + (ranks_per_node - 1) * own

    (looked, node_lookups), (read_bytes, node_bytes) = of_node(lookups), of_node(size)
    return Reads(
        lookups=looked, bytes=read_bytes, node_lookups=node_lookups, node_bytes=node_bytes, elsewhere=elsewhere
    )
