"""The files of an environment on the disk: their status, and their hashes when they are wanted.

TensorFlow has 23,000 files and 1.7 GB. Looking at the status of all takes half a second; reading and hashing them takes 2 s
while they are in memory, as they are after a proof, and 20 s from a slow disk.
"""

from __future__ import annotations

import csv
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from provision.machine.files.beneath import change_modes
from provision.machine.files.trusted_files import open_regular
from provision.model.manifest import LINK, OUTSIDE, FileEntry, packages_of

# Hashing runs outside Python's lock; four threads also wait for four files of a parallel file system at once.
THREADS = 4
AT_ONCE = 64
RECORDS = "lib/python*/site-packages/*.dist-info/RECORD"
# In the folder of the environment, in that of a virtual environment, in the view of Spack and behind its name.
INTERPRETER = re.compile(r"(view/|\._view/\w+/)?bin/python[0-9.]*(-config)?")
DEPTH_OF_FIRST = 4
MOST_FIRST = 4000


def status_of_files(prefix: Path, beside: Iterable[str] = ()) -> dict[str, os.stat_result]:
    """The status of every file and link below a prefix, by its path from there; records of the tool are left out.

    The files of the folders `beside` have absolute paths; a folder that is gone has none.

    Raises:
        OSError: a folder cannot be read.
    """
    found = {}
    there = [(Path(folder), f"{folder}/") for folder in beside if os.path.lexists(folder)]
    for place, start in ((prefix, ""), *there):
        for folder, names in _walk(place):
            for name in names:
                path = f"{start}{folder}{name}"
                found[path] = os.lstat(prefix / path)
    return found


def links_out(prefix: Path, paths: Iterable[str], store: str) -> Iterator[tuple[str, str]]:
    """Those of these links that lead out of the prefix, or nowhere, each with what it names.

    The links of an interpreter lead to the Python that it was made with, those of Spack's view to its `store`.
    """
    inside = tuple(f"{os.path.realpath(folder)}/" for folder in (prefix, store))
    for path in paths:
        target = os.path.realpath(prefix / path)
        out = not target.startswith(inside) and not INTERPRETER.fullmatch(path)
        if out or not os.path.lexists(target):
            yield path, str((prefix / path).readlink())


def links_of(prefix: Path) -> list[str]:
    """The symbolic links of a prefix, by their paths from there."""
    paths = (f"{folder}{name}" for folder, names in _walk(prefix) for name in names) if prefix.is_dir() else ()
    return [path for path in paths if (prefix / path).is_symlink()]


def packages_beside(prefix: Path, store: str) -> tuple[str, ...]:
    """The folders of packages in Spack's store to which links of a prefix lead; Spack keeps records in each (`.spack`).

    Raises:
        OSError: a folder or link cannot be read.
    """
    known: dict[str, str] = {store: ""}
    for folder, names in _walk(prefix):
        for path in (prefix / f"{folder}{name}" for name in names):
            target = str(path.readlink()) if path.is_symlink() else ""
            if target.startswith(f"{store}/"):
                _package_of(target, known)
    return tuple(sorted(set(known.values()) - {""}))


def _package_of(path: str, known: dict[str, str]) -> str:
    """The folder of the package that a path is in, or empty; `known` keeps the answer for each folder on the way."""
    above = path.rpartition("/")[0]
    if above not in known:
        is_package = os.path.lexists(f"{above}/.spack/spec.json")
        known[above] = above if is_package else _package_of(above, known)
    return known[above]


def _walk(prefix: Path) -> Iterator[tuple[str, list[str]]]:
    """Each folder as the beginning of its files' paths, with the names of its files and links."""
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        names = []
        with os.scandir(prefix / folder) as entries:
            for entry in entries:
                if not folder and entry.name in OUTSIDE:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(f"{folder}{entry.name}/")
                else:
                    names.append(entry.name)
        yield folder, names


def measure(prefix: Path, beside: Iterable[str], hashes: Mapping[str, str]) -> dict[str, FileEntry]:
    """Every file of a prefix, and of the packages `beside`, with its hash and its package; `hashes` are those known already.

    Raises:
        OSError: a file cannot be read.
    """
    beside = tuple(beside)
    statuses = status_of_files(prefix, beside)
    recorded = dict(recorded_packages(prefix))
    for folder in beside:
        recorded |= {f"{folder}/{path}": package for path, package in recorded_packages(Path(folder)).items()}
    packages = packages_of(statuses, recorded)
    found = {}
    new = digests(prefix, [path for path in statuses if path not in hashes])
    for path, digest in (*hashes.items(), *new):
        if isinstance(digest, OSError):
            raise digest
        found[path] = FileEntry(
            digest=digest,
            mode=stat.S_IMODE(statuses[path].st_mode),
            size=statuses[path].st_size,
            mtime_ns=statuses[path].st_mtime_ns,
            package=packages[path],
        )
    return found


def digests(prefix: Path, paths: Iterable[str]) -> Iterator[tuple[str, str | OSError]]:
    """The digest of each of these files, in order, or why it cannot be read."""
    from concurrent.futures import ThreadPoolExecutor  # it loads much, and most verbs hash nothing

    todo = list(paths)
    parts = [todo[start : start + AT_ONCE] for start in range(0, len(todo), AT_ONCE)]
    with ThreadPoolExecutor(THREADS) as pool:
        for part, found in zip(
            parts, pool.map(lambda part: [_digest_of(prefix / path) for path in part], parts), strict=True
        ):
            yield from zip(part, found, strict=True)


def _digest_of(path: Path) -> str | OSError:
    """The sha256 of a file; of a symbolic link its target."""
    digest = hashlib.sha256()
    try:
        with os.fdopen(open_regular(path, follow=False)[0], "rb", buffering=0) as file:
            while block := file.read(1 << 20):
                digest.update(block)
    except OSError as error:
        return f"{LINK}{path.readlink()}" if path.is_symlink() else error
    return digest.hexdigest()


def recorded_packages(prefix: Path) -> Mapping[str, str]:
    """Path to package, as the packages' own lists of files have it; a list that cannot be read is left out."""
    found = {}
    for record in prefix.glob(RECORDS):
        package = re.sub(r"-[^-]+\.dist-info$", "", record.parent.name)
        site = record.parent.parent.relative_to(prefix)
        try:
            with record.open(newline="", encoding="utf-8") as file:
                for row in csv.reader(file):
                    if row:
                        found[os.path.normpath(site / row[0])] = package
        except (OSError, UnicodeDecodeError, csv.Error):
            continue
    return found


def first_of(paths: Iterable[str]) -> tuple[str, ...]:
    """The folders and files near the top of a prefix: looking at them takes milliseconds, and finds what a purge removed."""
    found = dict.fromkeys("/".join(path.split("/")[:DEPTH_OF_FIRST]) for path in paths)
    return tuple(sorted(found)[:MOST_FIRST])


def first_missing(prefix: str, paths: Iterable[str]) -> str | None:
    """The first of these paths from a prefix that does not exist. A folder is listed once: a look at each path takes longer."""
    there: dict[str, frozenset[str]] = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        if folder not in there:
            try:
                there[folder] = frozenset(os.listdir(os.path.join(prefix, folder)))  # noqa: PTH208
            except OSError:
                return path
        if name not in there[folder]:
            return path
    return None


def make_read_only(prefix: Path) -> None:
    """Take away the right to write below a prefix from everyone, the owner too; the tool's records stay writable.

    Raises:
        OSError: a mode cannot be changed.
    """
    change_modes(prefix, lambda mode: mode & ~0o222, OUTSIDE)


def is_read_only(prefix: Path) -> bool:
    """Whether nobody can write what is directly in a prefix, as `make_read_only` leaves it; not if nothing is there.

    Raises:
        OSError: it cannot be read.
    """
    with os.scandir(prefix) as entries:
        there = [entry for entry in entries if entry.name not in OUTSIDE and not entry.is_symlink()]
        return bool(there) and not any(entry.stat().st_mode & 0o222 for entry in there)
