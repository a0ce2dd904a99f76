"""A user's requirements file of pip: packages that are added to those of a lock. Pure.

Source of the format: pip's documentation, "Requirements File Format". Only packages of an index are taken, with versions, markers
and hashes: a job on another node sees no other file and no folder of the user, and every option would be one more difference.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from packaging.requirements import InvalidRequirement, Requirement

from provision.errors import ConfigError
from provision.model.lock import Lock, normalized

HASHES = re.compile(r"\s+--hash[= ][a-z0-9]+:[0-9a-fA-F]+")
COMMENT = re.compile(r"(^|\s+)#.*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """A file that was read; `sha256` is the digest of its bytes."""

    path: str
    sha256: str


def read_requirements(text: str, path: str, lock: Lock, minor: str) -> Requirements:
    """The packages that a file names, which are to be added to those of the lock on this Python (minor version).

    Raises:
        ConfigError: lines that cannot be used, or that do not allow the version of a package in the lock; all are named.
    """
    faults: list[str] = []
    conflicts: list[str] = []
    wanted: dict[str, bool] = {}
    for number, line in _lines(text):
        hashed, line = bool(HASHES.search(line)), HASHES.sub("", line).strip()
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            faults.append(f"line {number}: `{line:.80}` is not a package with a version, as in `pandas>=2`")
            continue
        if requirement.url is not None:
            faults.append(
                f"line {number}: `{requirement.name}` comes from an address; only packages of an index can be used"
            )
            continue
        if requirement.marker is not None and not requirement.marker.evaluate(
            {"python_version": minor, "python_full_version": f"{minor}.0"}
        ):
            continue
        name = normalized(requirement.name)
        if name == "horovod":
            faults.append(
                f"line {number}: Horovod has no wheels, and would be compiled without an MPI; take an image that has it"
            )
        wanted[name] = hashed
        pin = lock.pin(name)
        if pin is not None and not requirement.specifier.contains(pin.version, prereleases=True):
            conflicts.append(
                f"line {number} wants `{line}`, but the overlay has `{name}=={pin.version}` (`{lock.path}`)"
            )
    if not wanted and not faults:
        faults.append("it names no package")
    if any(wanted.values()) and not all(wanted.values()):
        without = next(name for name, hashed in wanted.items() if not hashed)
        faults.append(f"`{without}` has no `--hash`, but others have: pip then requires one for each")
    if wanted and not faults and not conflicts and all(lock.pin(name) is not None for name in wanted):
        faults.append(f"the overlay has all of its packages already (`{lock.path}`)")
    if faults:
        raise ConfigError(
            f"`{path}` cannot be used for an overlay", evidence=[*faults, *conflicts], hint=f"edit `{path}`"
        )
    if conflicts:
        raise ConfigError(
            f"`{path}` conflicts with the packages of the overlay",
            evidence=conflicts,
            hint=f"allow these versions in `{path}`, or `--stack` with another TensorFlow",
        )
    return Requirements(path=path, sha256=hashlib.sha256(text.encode()).hexdigest())


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines without comments and empty ones, each with the number of its first; a backslash at the end joins the next one."""
    start, joined = 1, ""
    for number, line in enumerate(text.splitlines(), start=1):
        if not joined:
            start = number
        joined += COMMENT.sub("", line) if not line.endswith("\\") else f"{line[:-1]} "
        if not line.endswith("\\"):
            if joined.strip():
                yield start, joined.strip()
            joined = ""
    if joined.strip():
        yield start, joined.strip()
