"""The two looks at an environment: `glance` takes milliseconds, `examine` compares every file with the manifest.

Without `hashes`, `examine` finds what is missing, added, cut, replaced or edited by a program that does not hide it: a file whose
time differs is read. It takes half a second for TensorFlow's 23,000 files. Reading all contents finds flipped bytes too; it takes
2 s from memory, and as long as the disk needs otherwise.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from provision.errors import NewerError, StoreError
from provision.machine.files.disk import differing, exists, json_object, write_json
from provision.machine.files.file_tree import digests, first_missing, is_read_only, links_out, status_of_files
from provision.machine.probes.traces import measure_trace
from provision.machine.rendering.render import template_sha256
from provision.machine.root.image_only import described_images, is_image_only
from provision.machine.root.store import Store
from provision.machine.sharing.claims import utc_now
from provision.model.check import Check, observed
from provision.model.condition import Examination, judge_traces, remembered_reason
from provision.model.layout import DELIVER, DELIVER_TEMPLATE, IMAGES, EnvironmentId
from provision.model.manifest import FILES, HEAD, LINK, FileEntry, ManifestHead, is_bytecode_of, read_files
from provision.model.record import Record
from provision.schedulers import job_here

REBUILD = "`provision build --rebuild` builds a second one beside it, proves the second, and publishes it"
RECORD = "record.json"
NEW = "it was not there when the environment passed its proof"
MOST_TEXT = 256 << 20
IN_PLACE_OF_FILES = tuple(f".provision/images/{name}" for name in ("environment.squashfs", IMAGES, DELIVER))


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a glance at an environment showed; nothing if it is unfinished."""

    record: Record | None = None
    head: ManifestHead | None = None
    why: str | None = None
    """Why it is broken, as far as a few hundred looks and the last `examine` show it."""
    newer: StoreError | None = None
    """The error of a record that a newer version wrote: nothing of the environment is changed."""

    @property
    def finished(self) -> bool:
        """Whether it passed its proof: then nothing in its prefix is written any more, whole or broken."""
        return bool(self.record or self.why or self.newer)


def glance(store: Store, env: EnvironmentId, *, loaded: bool) -> Seen:
    """Look at an environment. `loaded`: whether users can load it now: then a missing record was lost."""
    try:
        record, why = _read_record(store, env)
    except StoreError as error:
        return Seen(newer=error)
    if record is None:
        lost = why or loaded or _has_lost_records(store, env)
        return Seen(why=f"{RECORD}: {why or 'it is missing'}" if lost else None)
    head, wrong = read_head(store, env, record)
    why = why or (f"{HEAD}: {wrong}" if wrong else _why_broken(store, env, head))
    return Seen(record=record, head=head, why=why)


def _read_record(store: Store, env: EnvironmentId) -> tuple[Record | None, str | None]:
    """The record, and why it is not the one of this prefix. Raises `StoreError` if a newer version wrote it."""
    try:
        record = store.record(env)
    except StoreError as error:
        if error.kind == "newer":
            raise
        return None, f"damaged: {' '.join(error.evidence)}"
    if record is not None and record.environment != str(env):
        return record, f"its record is that of {record.environment}"
    if record is not None and record.prefix != str(store.layout.prefix(env)):
        return record, f"it was built at {record.prefix}, and works only there"
    return record, None


def _has_lost_records(store: Store, env: EnvironmentId) -> bool:
    """Whether an environment that users cannot load was sealed, although nothing says so: nobody can write its files.

    A build that was killed while it sealed left the receipt of the proof.
    """
    with contextlib.suppress(OSError):
        return is_read_only(Path(store.layout.prefix(env))) and "proof" not in store.receipts(env)
    return False


def _why_broken(store: Store, env: EnvironmentId, head: ManifestHead | None) -> str | None:
    """Why an environment with a record is broken, as far as a few hundred looks, or the last examination, show it."""
    prefix = str(store.layout.prefix(env))
    first = IN_PLACE_OF_FILES if is_image_only(Path(prefix)) else head.first if head else ()
    missing = first_missing(prefix, first)
    if missing:
        return f"{missing}: it is missing"
    python = f"{prefix}/bin/python"
    if os.path.islink(python) and not exists(python):  # noqa: PTH114
        return f"bin/python: the Python that it was made with is gone ({Path(python).readlink()})"
    seen = store.shared.read_json(store.layout.verified(env))
    return remembered_reason(seen, str(env)) if seen else None


def read_head(store: Store, env: EnvironmentId, record: Record | None) -> tuple[ManifestHead | None, str | None]:
    """The head of the manifest, or what is wrong with it. An older version, or a newer one, gives neither."""
    try:
        content = store.shared.read(f"{store.layout.records_folder(env)}/{HEAD}")
        if content is None:
            return None, None if record is not None and record.user is None else "it is missing"
        return ManifestHead.from_dict(json_object(content)), None
    except NewerError:
        return None, None
    except (OSError, ValueError) as error:
        return None, f"damaged: {getattr(error, 'strerror', None) or error}"


def examine(store: Store, env: EnvironmentId, *, hashes: bool) -> Examination:
    """What differs of an environment that passed its proof: files, records, and the machine."""
    notes: list[str] = []
    found: list[Check] = []
    folder = store.layout.records_folder(env)

    def differs(name: str, reason: str) -> None:
        found.append(observed("", "bad", reason, name=f"{folder}/{name}", hint=REBUILD))

    record = None
    try:
        record, why = _read_record(store, env)
        if why or record is None:
            differs(RECORD, why or "it is missing")
    except StoreError as error:
        notes.extend(error.evidence)
    head, why = read_head(store, env, record)
    if why:
        differs(HEAD, why)
    elif head is None:
        notes.append("there is no manifest that this version can read: its files were not compared")
    else:
        for name, reason in differing(Path(folder), {**_images(store, env, notes), **head.records}, "damaged"):
            if name != RECORD or not found:
                differs(name, reason)
        try:
            found += _files(store, env, head, hashes=hashes)
        except (OSError, ValueError) as error:
            differs(FILES, f"damaged: {getattr(error, 'strerror', None) or error}")
    if record is not None:
        here = record.job is None or job_here(os.environ) is not None
        differences, more = judge_traces(record.traces, measure_trace, same_node=here)
        found, notes = [*found, *differences], [*notes, *more]
    return Examination(environment=str(env), differences=tuple(found), notes=tuple(notes), hashed=hashes, at=utc_now())


def _images(store: Store, env: EnvironmentId, notes: list[str]) -> dict[str, str]:
    """The hashes of the images of an environment, if any, and of the program that mounts them, by their names in its records.

    A program that another version of the tool wrote is whole: it is a note.
    """
    folder = store.layout.images(env)
    described = described_images(store, env)
    files = {f"{folder.name}/{PurePosixPath(one['file']).name}": one["sha256"] for one in described.get("images", ())}
    program = described.get("program")
    if program:
        files[f"{folder.name}/{DELIVER}"] = program["sha256"]
        if program["template"] != template_sha256(DELIVER_TEMPLATE):
            notes.append(f"its `{DELIVER}` is of another version of the tool: `provision pack {env}` writes it again")
    return files


def _files(store: Store, env: EnvironmentId, head: ManifestHead, *, hashes: bool) -> Iterator[Check]:
    """What differs of the files of the prefix."""
    prefix = Path(store.layout.prefix(env))
    text = store.shared.read(prefix / ".provision" / FILES, limit=MOST_TEXT)
    if text is None or hashlib.sha256(text).hexdigest() != head.digest:
        raise ValueError("it is missing" if text is None else "it is not the one that was written after the proof")
    if is_image_only(prefix):
        return  # they are in the image, whose hash is in the head
    expected, there = read_files(text.decode()), status_of_files(prefix, head.beside)
    changed = {path: NEW for path in there.keys() - expected.keys() if not is_bytecode_of(path, expected)}
    to_read = []
    for path, entry in expected.items():
        reason = _reason(entry, there.get(path))
        if reason:
            changed[path] = "a folder is in its place" if path not in there and (prefix / path).is_dir() else reason
        elif hashes or there[path].st_mtime_ns != entry.mtime_ns or entry.digest.startswith(LINK):
            to_read.append(path)
    for path, digest in digests(prefix, to_read):
        if digest != expected[path].digest:
            changed[path] = (
                "its content changed" if isinstance(digest, str) else f"it cannot be read: {digest.strerror}"
            )
    links = [path for path in to_read if expected[path].digest.startswith(LINK) and not path.startswith("/")]
    for path, target in links_out(prefix, links, str(store.layout.spack_store)):
        changed.setdefault(path, f"it is a link to a file that is not of the environment, or is gone: {target}")
    for path, reason in sorted(changed.items()):
        package = expected[path].package if path in expected else ""
        hint = _of_store(store, prefix, path) if path.startswith("/") else REBUILD
        yield observed(package, "bad", reason, name=path, hint=hint)


def _of_store(store: Store, prefix: Path, path: str) -> str:
    """What to do about a file of Spack's store: a rebuild alone would use the damaged package again."""
    from provision.machine.root.spack import uninstall_command  # with the backends, which a look needs only here

    command = uninstall_command(store, str(prefix), path)
    return f"`{command}` removes the damaged package; then {REBUILD}" if command else REBUILD


def _reason(entry: FileEntry, status: os.stat_result | None) -> str | None:
    """What the status of a file shows."""
    if status is None:
        return "it is missing"
    link = entry.digest.startswith(LINK)
    if link != stat.S_ISLNK(status.st_mode) or not (link or stat.S_ISREG(status.st_mode)):
        return "it is another kind of file"
    if status.st_size != entry.size:
        return "it is empty" if not status.st_size else "its size changed"
    mode = stat.S_IMODE(status.st_mode)
    return None if link or mode == entry.mode else f"its mode is {mode:o} instead of {entry.mode:o}"


def remember(store: Store, env: EnvironmentId, examination: Examination) -> None:
    """Keep what was found, so that `list` shows it and `build` builds beside it; nothing if we cannot write below the root."""
    path = Path(store.layout.verified(env))
    with contextlib.suppress(StoreError, OSError):
        store.shared.make(path.parent)
        write_json(path, examination.to_dict())
