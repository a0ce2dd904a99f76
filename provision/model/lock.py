"""A lock: requirements compiled by pip-tools, every package pinned and hashed, for one stack and one Python.

The header of a lock contains the sha256 of the input from which it was compiled, so that a later edit of the input is
noticed without a query to the package index.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from provision.errors import ConfigError

HEADER = re.compile(r"^# input sha256: ([0-9a-f]{64})$", re.MULTILINE)
ENTRY = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?==([A-Za-z0-9][A-Za-z0-9.!+_-]*)(?=[\s;\\]|$)")
MARKER = re.compile(r"^([^\s#;]+==[^\s;]+) *;[^\\\n]*?(?=(?: \\)?$)", re.MULTILINE)
# Another package index, for what is not on the usual one. It is for the installer, and has no password.
INDEX = re.compile(r"^--extra-index-url https?://[^\s@\\#]+\n", re.MULTILINE)
HASH = re.compile(r"--hash=(sha256:[0-9a-f]{64})")


def normalized(name: str) -> str:
    """A distribution's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """One pinned package; `text` is its entry in the lock."""

    name: str
    version: str
    hashes: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """A whole lock file. `path` is where it was read, `text` its content, `sha256` the digest of its bytes."""

    path: str
    text: str
    sha256: str
    input_sha256: str
    pins: tuple[Pin, ...]

    def pin(self, name: str) -> Pin | None:
        """The pin of the distribution `name`, if it is in the lock."""
        return next((pin for pin in self.pins if pin.name == normalized(name)), None)

    def without(self, *names: str) -> str:
        """The requirements of all packages except those, as text for an installer, with the other indexes of the lock."""
        left_out = set(map(normalized, names))
        return "".join((*INDEX.findall(self.text), *(pin.text for pin in self.pins if pin.name not in left_out)))


def lock_header(input_text: str) -> str:
    """The line that ties a lock to its input."""
    return f"# input sha256: {hashlib.sha256(input_text.encode()).hexdigest()}"


def without_markers(text: str) -> str:
    """The pins without environment markers, which they got from the input.

    A lock is for one Python, so each of its pins holds there; but the pip of another Python that fetches the files would decide
    the markers by its own version.
    """
    return MARKER.sub(r"\1", text)


def parse_lock(text: str, path: str) -> Lock:
    """Read the lock in `text`.

    Raises:
        ConfigError: the header is missing, or packages are not pinned or have no hash; the error lists each such line.
    """
    name = PurePosixPath(path).name.rpartition("-py")[0]
    hint = f"`provision lock {name or 'NAME'}` compiles it again"
    header = HEADER.search(text)
    if header is None:
        raise ConfigError(f"`{path}` has no header that names the input from which it was compiled", hint=hint)
    pins, faults = _read_entries(text)
    if faults or not pins:
        raise ConfigError(f"`{path}` is not a lock", evidence=faults or ["it contains no package"], hint=hint)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Lock(path=path, text=text, sha256=digest, input_sha256=header[1], pins=tuple(pins))


def _read_entries(text: str) -> tuple[list[Pin], list[str]]:
    """The pins in the text, and what is wrong with its other lines."""
    pins: list[Pin] = []
    faults: list[str] = []
    for logical in re.sub(r"\\\n", "\0", text).splitlines():
        line = logical.replace("\0", "\\\n")
        if not line.strip() or line.lstrip().startswith("#") or INDEX.fullmatch(f"{line}\n"):
            continue
        entry, hashes = ENTRY.match(line), tuple(HASH.findall(line))
        if entry is None:
            faults.append(f"not a pinned package: {line.splitlines()[0]}")
        elif not hashes:
            faults.append(f"no hash: {line.splitlines()[0]}")
        else:
            pins.append(Pin(name=normalized(entry[1]), version=entry[2], hashes=hashes, text=line + "\n"))
    return pins, faults


def check_lock(lock: Lock, input_text: str, input_path: str) -> None:
    """Check that `lock` was compiled from `input_text`.

    Raises:
        ConfigError: the input has changed.
    """
    if lock_header(input_text) != f"# input sha256: {lock.input_sha256}":
        raise ConfigError(
            f"the lock `{lock.path}` was not compiled from the current `{input_path}`",
            evidence=["the input was edited after the lock was compiled"],
            hint=f"`provision lock {PurePosixPath(input_path).stem}` compiles it again",
        )
