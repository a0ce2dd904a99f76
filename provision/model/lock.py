"""A lock: requirements compiled by pip-tools, every package pinned and hashed, for one stack and one Python.

The first line of a lock names the sha256 of the input it was compiled from, so that an input edited afterwards is
noticed without asking the package index.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from provision.errors import ConfigError

HEADER = re.compile(r"^# input sha256: ([0-9a-f]{64})$", re.MULTILINE)
ENTRY = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?==([A-Za-z0-9][A-Za-z0-9.!+_-]*)(?=[\s;\\]|$)")
HASH = re.compile(r"--hash=(sha256:[0-9a-f]{64})")


def normalized(name: str) -> str:
    """A distribution's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """One pinned package: its text in the lock stands in `text`."""

    name: str
    version: str
    hashes: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """A whole lock file. `path` is where it was read, `sha256` of its bytes."""

    path: str
    sha256: str
    input_sha256: str
    pins: tuple[Pin, ...]

    def pin(self, name: str) -> Pin | None:
        """The pin of the distribution `name`, if it is in the lock."""
        return next((pin for pin in self.pins if pin.name == normalized(name)), None)

    def without(self, name: str) -> str:
        """The requirements of everything but `name`, as text for an installer."""
        return "".join(pin.text for pin in self.pins if pin.name != normalized(name))


def lock_header(input_text: str) -> str:
    """The line that ties a lock to its input."""
    return f"# input sha256: {hashlib.sha256(input_text.encode()).hexdigest()}"


def parse_lock(text: str, path: str) -> Lock:
    """The lock in `text`.

    Raises:
        ConfigError: the header is missing, or a package is not pinned or has no hash; every such line is listed.
    """
    hint = "compile it again: `provision lock`"
    header = HEADER.search(text)
    if header is None:
        raise ConfigError(f"`{path}` does not say which input it was compiled from", hint=hint)
    pins, faults = [], []
    for logical in re.sub(r"\\\n", "\0", text).splitlines():
        line = logical.replace("\0", "\\\n")
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        entry, hashes = ENTRY.match(line), tuple(HASH.findall(line))
        if entry is None:
            faults.append(f"not a pinned package: {line.splitlines()[0]}")
        elif not hashes:
            faults.append(f"no hash: {line.splitlines()[0]}")
        else:
            pins.append(Pin(name=normalized(entry[1]), version=entry[2], hashes=hashes, text=line + "\n"))
    if faults or not pins:
        raise ConfigError(f"`{path}` is not a lock", evidence=faults or ["it pins nothing"], hint=hint)
    return Lock(path=path, sha256=hashlib.sha256(text.encode()).hexdigest(), input_sha256=header[1], pins=tuple(pins))


def check_lock(lock: Lock, input_text: str, input_path: str) -> None:
    """Raise `ConfigError` unless `lock` was compiled from `input_text`."""
    if lock_header(input_text) != f"# input sha256: {lock.input_sha256}":
        raise ConfigError(
            f"the lock `{lock.path}` was not compiled from `{input_path}` as it is",
            evidence=["the input was edited after the lock was compiled"],
            hint="compile it again: `provision lock`",
        )
