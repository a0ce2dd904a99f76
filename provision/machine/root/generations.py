"""The generations of an arch: folders of modulefiles, and the link that says which of them users load.

A generation is never changed. A change writes a new one beside the others and then replaces the link with one rename, so users
see either everything of the old one or everything of the new one. `generation.json` in it has the sha256 of every file.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from provision.errors import StoreError
from provision.machine.files.beneath import new_folder
from provision.machine.files.disk import (
    differing,
    disk_error,
    disk_errors,
    sha256_of,
    sync_folder,
    sync_tree,
    write,
    write_json,
)
from provision.machine.files.who_may_write import user_name
from provision.machine.sharing import locks
from provision.machine.sharing.claims import utc_now
from provision.machine.sharing.locks import HeldLock
from provision.machine.sharing.shared_root import SharedRoot
from provision.model.generation import Generation
from provision.model.layout import KINDS, modulefile_path

ABOUT = "generation.json"
Decide = Callable[[Generation], Generation]
Files = Callable[[Generation, Generation], Mapping[str, str | None]]
Choose = Callable[[int | None, Mapping[int, Generation]], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What was done: the generation that users loaded before, the one that they load now, and its number."""

    before: Generation
    after: Generation
    number: int


@dataclass(frozen=True, slots=True)
class Generations:
    """The generations below one root."""

    shared: SharedRoot

    # Reading

    def pointer(self, arch: str) -> Path:
        """The link that users' module paths go through."""
        return Path(self.shared.layout.modules(arch))

    def folder(self, arch: str, number: int) -> Path:
        """The folder of one generation."""
        return Path(self.shared.layout.generations(arch)) / f"{number:06d}"

    def archs(self) -> list[str]:
        """The archs for which something was published."""
        found = {path.name for path in (self.shared.root / "modules").glob("[!.]*")}
        found |= {path.name for path in (self.shared.root / "modules" / ".generations").glob("[!.]*")}
        return sorted(found)

    def numbers(self, arch: str) -> list[int]:
        """The numbers of all generations of an arch, the oldest first."""
        with contextlib.suppress(OSError):
            folders = Path(self.shared.layout.generations(arch)).iterdir()
            return sorted(int(path.name) for path in folders if path.name.isdecimal())
        return []

    def current(self, arch: str) -> int | None:
        """The number that the pointer names, whether that generation exists or not; None if there is no pointer."""
        try:
            name = self.pointer(arch).readlink().name
        except OSError:
            return None
        return int(name) if name.isdecimal() else None

    def published(self, arch: str) -> Generation:
        """What users of the arch can load now.

        Raises:
            StoreError: the description of the generation is damaged, or a newer version wrote it.
        """
        pointer = self.pointer(arch)
        return self._read(pointer) if pointer.is_dir() else Generation()

    def read_all(self, arch: str) -> dict[int, Generation]:
        """All generations that are whole, by their number."""
        found = {}
        for number in self.numbers(arch):
            with contextlib.suppress(StoreError):
                found[number] = self._read(self.folder(arch, number))
        return found

    def _read(self, folder: Path) -> Generation:
        modules, path = self.modules_in(folder), folder / ABOUT
        hint = "`provision rollback` goes back to the generation before it"
        found = self.shared.read_record(path, lambda data: Generation.from_dict(data, modules=modules), hint)
        # An older version wrote no description: nothing is hidden, and no version is chosen.
        return found or Generation(modules=modules)

    def look(self, folder: Path) -> tuple[Generation, str | None]:
        """A generation in this folder, and why only a newer version can read it: then, or if it is damaged, its modules alone."""
        try:
            return self._read(folder), None
        except StoreError as error:
            return Generation(modules=self.modules_in(folder)), error.message if error.kind == "newer" else None

    def modules_in(self, folder: Path) -> dict[str, str]:
        """The modules of the generation in this folder, each with its environment; what cannot be read is omitted."""
        modules: dict[str, str] = {}
        try:
            paths = sorted(folder.glob("environments/*/*"))
        except OSError:  # it is removed, or exchanged, meanwhile
            return modules
        for path in paths:
            with contextlib.suppress(OSError, UnicodeDecodeError):
                text = (self.shared.read(path) or b"").decode().strip()
                if text:
                    modules["/".join(path.parts[-2:])] = text
        return modules

    def pointers(self) -> dict[str, str]:
        """`<arch>/<name>/<version>` to the environment that users get when they load that module."""
        pointers: dict[str, str] = {}
        for arch in sorted((self.shared.root / "modules").glob("[!.]*")):
            pointers |= {f"{arch.name}/{module}": environment for module, environment in self.modules_in(arch).items()}
        return pointers

    def damaged(self, arch: str) -> dict[Path, str]:
        """What is wrong with the files of the generation that users load: path and reason."""
        pointer, number = self.pointer(arch), self.current(arch)
        if not os.path.lexists(pointer):
            return {}
        if not pointer.is_dir():
            return {pointer: f"generation {number} that it points to is missing"}
        try:
            published = self.published(arch)
        except StoreError as error:
            return {pointer / ABOUT: " ".join(error.evidence)}
        wrong = differing(pointer, published.files, "it was changed after it was published")
        return {pointer / name: reason for name, reason in wrong}

    # Changing

    def change(self, arch: str, decide: Decide, files: Files) -> Change:
        """Replace the generation of an arch: `decide` makes the new one from the old one, under the lock of the arch.

        `files` returns the texts of the files that differ, by path; None removes a file. Modules that are gone lose theirs.

        Raises:
            StoreError: the generation cannot be written, is damaged, or the file system has no locks.
        """
        pointer, generations = self.pointer(arch), Path(self.shared.layout.generations(arch))
        with self.held(arch, "changes what users load"):
            source = self._source(arch)
            before = Generation() if source is None else self._read(source)
            after = decide(before)
            texts = dict(files(before, after))
            user, host = user_name(os.geteuid()), socket.gethostname()
            after = replace(after, before=self.current(arch), user=user, host=host, since=utc_now())
            self.shared.make(generations)
            self.sweep(arch)
            with disk_errors(pointer):
                beside = new_folder(generations, ".next.")
            try:
                if source is not None:
                    shutil.copytree(source, beside, symlinks=True, dirs_exist_ok=True)
                after = _write_files(beside, before, after, texts)
                write_json(beside / ABOUT, after.to_dict())
                sync_tree(beside)
                number = 1 + max(self.numbers(arch), default=0)
                beside.rename(self.folder(arch, number))
                # The pointer speaks for the generation, and for the records of its environments.
                sync_folder(generations)
                self._point(arch, number)
            except OSError as error:
                with contextlib.suppress(OSError):
                    self.shared.remove(beside)
                raise disk_error(error, pointer) from error
        return Change(before=before, after=after, number=number)

    def roll_back(self, arch: str, choose: Choose) -> Change:
        """Let the pointer of an arch point to another generation; `choose` gets the current number and all generations.

        Raises:
            StoreError: the link cannot be replaced, or the file system has no locks.
        """
        with self.held(arch, "changes what users load"):
            self.sweep(arch)
            generations, current = self.read_all(arch), self.current(arch)
            number = choose(current, generations)
            before = generations.get(current or 0, Generation())
            with disk_errors(self.pointer(arch)):
                self._point(arch, number)
        return Change(before=before, after=generations[number], number=number)

    def sweep(self, arch: str) -> None:
        """Remove what killed runs left. Needs the lock of the arch."""
        pointer = self.pointer(arch)
        for path in (*Path(self.shared.layout.generations(arch)).glob(".*"), *pointer.parent.glob(f".{arch}.*")):
            self.shared.remove_left(path)

    def _source(self, arch: str) -> Path | None:
        """The generation that the next one is made from: the current one; if it vanished, the newest that exists."""
        pointer = self.pointer(arch)
        if pointer.is_dir():
            return pointer
        left = self.read_all(arch) if os.path.lexists(pointer) else {}
        return self.folder(arch, max(left)) if left else None

    def held(self, arch: str, does: str) -> contextlib.AbstractContextManager[HeldLock]:
        """The lock under which the pointer of an arch changes."""
        path = self.shared.root / "locks" / f"publish-{arch}.lock"
        return locks.held(self.shared, path, {"does": f"{does} on arch {arch}"})

    def _point(self, arch: str, number: int) -> None:
        """Replace the link with one rename, and wait until it is on the disk."""
        pointer = self.pointer(arch)
        link = pointer.with_name(f".{pointer.name}.{os.getpid()}.{os.urandom(3).hex()}")
        link.symlink_to(Path(".generations") / arch / f"{number:06d}")
        try:
            link.replace(pointer)
        except OSError:
            link.unlink(missing_ok=True)
            raise
        sync_folder(pointer.parent)


def _write_files(folder: Path, before: Generation, after: Generation, texts: Mapping[str, str | None]) -> Generation:
    """Write the files that differ; returns the generation with the hashes of all its files."""
    for kind in KINDS:
        (folder / kind).mkdir(parents=True, exist_ok=True)
    gone = [path for module in before.modules if module not in after.modules for path in files_of(module)]
    written = {**dict.fromkeys(gone), **texts}
    for module, environment in after.modules.items():
        if before.modules.get(module) != environment:
            written[f"environments/{module}"] = f"{environment}\n"
    for name, text in written.items():
        path = folder / name
        if text is not None:
            write(path, text)
        else:
            path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                path.parent.rmdir()  # only if nothing else is in it
    hashes = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if name != ABOUT and path.is_file():
            text = written.get(name)
            # What was edited by hand keeps the hash of what was published, so that it is still found.
            hashes[name] = (
                hashlib.sha256(text.encode()).hexdigest()
                if text is not None
                else before.files.get(name) or sha256_of(path)
            )
    return replace(after, files=hashes)


def files_of(module: str) -> list[str]:
    """The files of a module in a generation: one for each kind of modulefile, and the name of its environment."""
    name, _, version = module.rpartition("/")
    return [
        *(str(modulefile_path(PurePosixPath(kind), kind, name, version)) for kind in KINDS),
        f"environments/{module}",
    ]
