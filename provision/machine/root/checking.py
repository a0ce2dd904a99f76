"""Compare an environment with its manifest: quickly by size, time and mode of every file, or by every content.

The quick look finds what is missing, added, cut, replaced or edited by a program that does not hide it: a file whose time
differs is read. It takes half a second for TensorFlow's 23,000 files. Reading all contents finds flipped bytes too; it takes 2 s
from memory, and as long as the disk needs otherwise.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from provision.errors import StoreError
from provision.machine.files.disk import json_object, sha256_of, write
from provision.machine.files.file_tree import digest_of, digests, links_out, status_of_files
from provision.machine.probes.traces import measure_trace
from provision.machine.root.generations import ABOUT, files_of
from provision.machine.root.spack_store import uninstall_command
from provision.machine.root.store import Store
from provision.machine.sharing.claims import utc_now
from provision.model.condition import Difference, Examination
from provision.model.layout import EnvironmentId
from provision.model.manifest import FILES, HEAD, LINK, FileEntry, ManifestHead, is_bytecode_of, read_files
from provision.model.stored import NewerError
from provision.model.trace import judge_traces
from provision.schedulers import job_here

REBUILD = "`provision build --rebuild` builds a second one beside it, proves the second, and publishes it"
MOST_TEXT = 256 << 20


def examine_files(store: Store, env: EnvironmentId, *, hashes: bool) -> Examination:
    """What differs of an environment that passed its proof: files, records, modulefiles, and the machine."""
    notes: list[str] = []
    found = [*_records(store, env, notes), *_modulefiles(store, env), *_machine(store, env, notes)]
    head = None
    try:
        head = read_head(store, env)
    except FileNotFoundError:
        record = None
        with contextlib.suppress(StoreError):
            record = store.record(env)
        if record is not None and record.user is None:
            notes.append("an older version built it, so there is no manifest: its files were not compared")
        else:
            found.append(Difference(subject=_path(store, env, HEAD), reason="it is missing", hint=REBUILD))
    except NewerError as error:
        notes.append(f"{_path(store, env, HEAD)}: {error}")
    except (OSError, ValueError) as error:
        reason = f"damaged: {getattr(error, 'strerror', None) or error}"
        found.append(Difference(subject=_path(store, env, HEAD), reason=reason, hint=REBUILD))
    if head is not None:
        try:
            found += _files(store, env, head, hashes=hashes)
        except (OSError, ValueError) as error:
            reason = f"damaged: {getattr(error, 'strerror', None) or error}"
            found.append(Difference(subject=_path(store, env, FILES), reason=reason, hint=REBUILD))
    return Examination(
        environment=str(env),
        differences=tuple(found),
        notes=tuple(notes),
        hashed=hashes,
        at=utc_now(),
    )


def read_head(store: Store, env: EnvironmentId) -> ManifestHead:
    """The head of the manifest.

    Raises:
        FileNotFoundError: there is none.
        OSError: it cannot be read.
        ValueError: it is damaged.
    """
    path = Path(store.layout.records_folder(env)) / HEAD
    content = store.shared.read(path)
    if content is None:
        raise FileNotFoundError(str(path))
    return ManifestHead.from_dict(json_object(content))


def _path(store: Store, env: EnvironmentId, name: str) -> str:
    return f"{store.layout.records_folder(env)}/{name}"


def _files(store: Store, env: EnvironmentId, head: ManifestHead, *, hashes: bool) -> Iterator[Difference]:
    """What differs of the files of the prefix."""
    prefix = Path(store.layout.prefix(env))
    text = store.shared.read(prefix / ".provision" / FILES, limit=MOST_TEXT)
    if text is None or hashlib.sha256(text).hexdigest() != head.digest:
        raise ValueError("it is missing" if text is None else "it is not the one that was written after the proof")
    expected, there = read_files(text.decode()), status_of_files(prefix, head.beside)
    changed: dict[str, str] = {}
    to_read = []
    for path, entry in expected.items():
        status = there.get(path)
        if status is None:
            changed[path] = "a folder is in its place" if (prefix / path).is_dir() else "it is missing"
            continue
        reason = _reason(entry, status)
        if reason:
            changed[path] = reason
        elif hashes or status.st_mtime_ns != entry.mtime_ns or entry.digest.startswith(LINK):
            to_read.append(path)
    changed |= dict(_contents(prefix, to_read, expected))
    links = [path for path in to_read if expected[path].digest.startswith(LINK) and not path.startswith("/")]
    for path, target in links_out(prefix, links, str(store.layout.spack_store)):
        changed.setdefault(path, f"it is a link to a file that is not of the environment, or is gone: {target}")
    for path in sorted(changed):
        hint = _of_store(store, prefix, path) if path.startswith("/") else REBUILD
        yield Difference(subject=path, reason=changed[path], package=expected[path].package, hint=hint)
    for path in sorted(there.keys() - expected.keys()):
        if not is_bytecode_of(path, expected):
            hint = _of_store(store, prefix, path) if path.startswith("/") else REBUILD
            yield Difference(subject=path, reason="it was not there when the environment passed its proof", hint=hint)


def _of_store(store: Store, prefix: Path, path: str) -> str:
    """What to do about a file of Spack's store: a rebuild alone would use the damaged package again."""
    command = uninstall_command(store, str(prefix), path)
    return f"`{command}` removes the damaged package; then {REBUILD}" if command else REBUILD


def _reason(entry: FileEntry, status: os.stat_result) -> str | None:
    """What the status of a file shows."""
    link = entry.digest.startswith(LINK)
    if link != stat.S_ISLNK(status.st_mode) or not (link or stat.S_ISREG(status.st_mode)):
        return "it is another kind of file"
    if status.st_size != entry.size:
        return "it is empty" if not status.st_size else "its size changed"
    mode = stat.S_IMODE(status.st_mode)
    return None if link or mode == entry.mode else f"its mode is {mode:o} instead of {entry.mode:o}"


def _contents(prefix: Path, paths: list[str], expected: Mapping[str, FileEntry]) -> Iterator[tuple[str, str]]:
    """The files among these whose content changed, or that cannot be read."""
    try:
        for path, digest in digests(prefix, paths):
            if digest != expected[path].digest:
                yield path, "its content changed"
    except OSError:  # one of them cannot be read: which?
        for path in paths:
            try:
                if digest_of(prefix / path) != expected[path].digest:
                    yield path, "its content changed"
            except OSError as error:
                yield path, f"it cannot be read: {error.strerror}"


def _records(store: Store, env: EnvironmentId, notes: list[str]) -> Iterator[Difference]:
    """What differs of the records, by the hashes in the head of the manifest."""
    records = Path(store.layout.records_folder(env))
    repair = "`provision build` writes it again"
    try:
        head = read_head(store, env)
    except (OSError, ValueError):
        head = None
    for name, expected in (head.records if head else {}).items():
        path = records / name
        try:
            if sha256_of(path) != expected:
                yield Difference(
                    subject=str(path),
                    reason="damaged: it is empty" if not path.stat().st_size else "damaged",
                    hint=repair,
                )
        except OSError as error:
            missing = isinstance(error, FileNotFoundError)
            yield Difference(subject=str(path), reason="it is missing" if missing else str(error.strerror), hint=repair)
    try:
        record, prefix = store.record(env), str(store.layout.prefix(env))
        if record is not None and record.prefix != prefix:
            reason = f"it was built at {record.prefix}, and works only there"
            yield Difference(subject=prefix, reason=reason, hint=REBUILD)
    except StoreError as error:
        if error.kind == "newer":
            notes.extend(error.evidence)
        elif head is None or "record.json" not in head.records:
            yield Difference(subject=str(records / "record.json"), reason=" ".join(error.evidence), hint=repair)


def _machine(store: Store, env: EnvironmentId, notes: list[str]) -> Iterator[Difference]:
    """What differs of the machine from the one that proved the environment."""
    try:
        record = store.record(env)
    except StoreError:
        return
    if record is None:
        return
    here = record.job is None or job_here(os.environ) is not None
    differences, more = judge_traces(record.traces, measure_trace, same_node=here)
    notes.extend(more)
    yield from differences


def _modulefiles(store: Store, env: EnvironmentId) -> Iterator[Difference]:
    """What is wrong with the modulefiles that load this environment, and with the pointer of its arch."""
    pointer, generations = store.generations.pointer(env.arch), store.generations
    module = f"{env.name}/{env.version}"
    loads = generations.modules_in(pointer).get(module)
    mine = {str(pointer / name) for name in (*files_of(module), ABOUT)} | {str(pointer)}
    for path, reason in generations.damaged(env.arch).items():
        if str(path) in mine and (loads in (None, str(env))):
            hint = (
                f"`provision rollback --arch {env.arch}` goes back to one that is there"
                if path == pointer
                else f"`provision publish {env}` writes it again"
            )
            yield Difference(subject=str(path), reason=reason, hint=hint)


def first_damage(store: Store, env: EnvironmentId) -> str | None:
    """Why an environment is broken, by the status of each of its files; None if it is not."""
    try:
        found = next(_files(store, env, read_head(store, env), hashes=False), None)
    except (OSError, ValueError):
        return None  # an older version built it, or only its owner may read what it was
    return f"{found.subject}: {found.reason}" if found else None


def remember(store: Store, env: EnvironmentId, examination: Examination) -> None:
    """Keep what was found, so that `list` shows it and `build` repairs it; nothing if we cannot write below the root."""
    path = Path(store.layout.verified(env))
    with contextlib.suppress(StoreError, OSError):
        store.shared.make(path.parent)
        write(path, json.dumps(examination.to_dict(), indent=1) + "\n")
