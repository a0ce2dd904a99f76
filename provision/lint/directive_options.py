"""Reads the options of a directive, with the long names that the rules use for every scheduler."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from provision.profile.scheduler import SchedulerName

# The long names of the one-letter options of each scheduler. No rule uses the options that are missing here.
SHORT: dict[SchedulerName, dict[str, str]] = {
    "slurm": {
        "-N": "nodes",
        "-n": "ntasks",
        "-A": "account",
        "-p": "partition",
        "-q": "qos",
        "-C": "constraint",
        "-t": "time",
        "-c": "cpus-per-task",
        "-G": "gpus",
        "-L": "licenses",
        "-J": "job-name",
        "-o": "output",
    },
    "pbs": {"-A": "account", "-q": "partition", "-N": "job-name", "-o": "output", "-W": "attributes"},
    "cobalt": {"-n": "nodes", "-t": "time", "-q": "partition", "-A": "account", "-O": "output"},
    "none": {},
}


def read_options(text: str, scheduler: SchedulerName) -> Iterator[tuple[str, str]]:
    """The options in a directive, with their long names."""
    try:
        words = shlex.split(text, comments=True)
    except ValueError:
        words = text.split()
    index = 0
    while index < len(words):
        word, index = words[index], index + 1
        following = words[index] if index < len(words) and not words[index].startswith("-") else ""
        if word.startswith("--"):
            key, separator, value = word[2:].partition("=")
            if not separator and following:
                value, index = following, index + 1
            yield key, value
            if key == "attrs":
                yield from _attributes(value)
        elif scheduler == "pbs" and word == "-l":
            index += 1
            yield from _resources(following)
        elif word[:2] in SHORT[scheduler]:
            value = word[2:] or following
            index += 0 if word[2:] else 1
            yield SHORT[scheduler][word[:2]], value


def _resources(text: str) -> Iterator[tuple[str, str]]:
    """The options in `-l` of PBS: `select=2:system=x:ngpus=4`, `walltime=…`, `filesystems=home:eagle`."""
    for resource in text.split(","):
        key, _, value = resource.partition("=")
        if key != "select":
            yield {"walltime": "time"}.get(key, key), value
            continue
        nodes, *chunk = value.split(":")
        yield "nodes", nodes
        for part in chunk:
            name, _, amount = part.partition("=")
            yield {"ngpus": "gpus-per-node"}.get(name, name), amount


def _attributes(text: str) -> Iterator[tuple[str, str]]:
    """The options in `--attrs` of Cobalt: `mcdram=cache:filesystems=home,theta-fs0`."""
    for part in text.split(":"):
        name, _, value = part.partition("=")
        if name == "filesystems":
            yield name, value
