"""The root of a site on disk.

Every file is written under a temporary name next to its final path, and then renamed. Publishing is one rename of one
symbolic link. What is read must have been written by an admin of the site (`shared_root.py`).
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from provision.errors import StoreError
from provision.machine.files.beneath import change_mode, change_modes
from provision.machine.files.disk import JSON, disk_error, disk_errors, names_in, write_json
from provision.machine.files.who_may_write import user_name
from provision.machine.probes.look_around import look_into, nearest_existing
from provision.machine.root.caches import Downloads, Wheels
from provision.machine.root.generations import Generations
from provision.machine.sharing.locks import HeldLock, Waiting, held
from provision.machine.sharing.shared_root import LEFT, SharedRoot
from provision.model.facts import Folder
from provision.model.layout import EnvironmentId, Layout
from provision.model.quoting import bash
from provision.model.record import Receipt, Record
from provision.model.trust import Sharing
from provision.model.verdict import ProofResult


@dataclass(frozen=True, slots=True)
class Store:
    """The files below one root, and how it is shared."""

    layout: Layout
    sharing: Sharing = field(default_factory=Sharing)

    @property
    def root(self) -> Path:
        """The root as a path on this machine."""
        return Path(self.layout.root)

    @property
    def downloads(self) -> Downloads:
        """The downloads below this root."""
        return Downloads(self.shared)

    @property
    def wheels(self) -> Wheels:
        """The compiled wheels below this root."""
        return Wheels(self.shared, self.remove)

    @property
    def generations(self) -> Generations:
        """What users can load, and what they could load before."""
        return Generations(self.shared)

    @property
    def shared(self) -> SharedRoot:
        """The root as several admins use it."""
        return SharedRoot(self.layout, self.sharing)

    @property
    def jobs(self) -> Path:
        """The folder of the job scripts of this user, and their output."""
        return Path(self.layout.jobs_of(user_name(os.geteuid())))

    # Reading

    def place(self) -> Folder:
        """Whether the root is writable, and the free space of its file system; the root need not exist."""
        return replace(look_into(nearest_existing(self.root), try_program=False), path=str(self.root))

    def environments(self, module: str | None = None) -> list[EnvironmentId]:
        """Every environment that has a prefix, finished or not; with `module` (`tensorflow/2.15.1`) only those of this one."""
        top, found = f"{self.root}/envs", []
        wanted, _, version = (module or "").rpartition("/")
        for arch in names_in(top):
            for name in [wanted] if module else names_in(f"{top}/{arch}"):
                for last in names_in(f"{top}/{arch}/{name}"):
                    with contextlib.suppress(ValueError):
                        env = EnvironmentId.parse(f"{arch}/{name}/{last}")
                        found += [env] if module is None or env.version == version else []
        return found

    def receipts(self, env: EnvironmentId) -> frozenset[str]:
        """The steps of this environment that are done.

        The record of a published environment lists them. Before that, each has a receipt; a damaged one does not count, and
        that of the proof counts only together with a verdict that passed.
        """
        with contextlib.suppress(StoreError):
            record = self.record(env)
            if record:
                return frozenset((*record.seconds, "publish"))
        done, passed = frozenset(self.read_receipts(env)), False
        with contextlib.suppress(ValueError):
            verdict = self.shared.read_json(Path(self.layout.records_folder(env)) / "verdict.json")
            passed = ProofResult.from_dict(verdict or {}).verdict.passed
        return done - {"candidate", "proof"} if "proof" in done and not passed else done

    def pointers(self) -> dict[str, str]:
        """`<arch>/<name>/<version>` to the environment that users get when they load that module."""
        return self.generations.pointers()

    def record(self, env: EnvironmentId) -> Record | None:
        """The record of an environment; None until it is published.

        Raises:
            StoreError: the record is damaged, or a newer version wrote it.
        """
        path, hint = self.layout.records_folder(env), "`provision build` builds the environment again, beside this one"
        return self.shared.read_record(f"{path}/record.json", Record.from_dict, hint)

    def records(self, module: str | None = None) -> list[Record]:
        """The records that are not damaged: of all environments, or of those of this module."""
        found = []
        for env in self.environments(module):
            with contextlib.suppress(StoreError):
                record = self.record(env)
                found += [record] if record else []
        return found

    def pin(self, env: EnvironmentId) -> str | None:
        """Why an environment is pinned; None if it is not."""
        try:
            content = self.shared.read(Path(self.layout.pin(env)))
        except OSError:
            return "there is a pin, but it cannot be read"
        return None if content is None else content.decode("utf-8", "replace").strip()

    # Writing

    def remove(self, path: str) -> None:
        """Remove a folder or file below the root, if it exists: rename a folder first, then delete its contents.

        Raises:
            StoreError: the folder is not below the root, or cannot be removed.
        """
        self.delete(self.set_aside(path))

    def set_aside(self, path: str) -> Path | None:
        """Rename a folder below the root, with one rename, so that `delete` can delete it; a file is deleted at once.

        Raises:
            StoreError: the folder is not below the root, or cannot be renamed.
        """
        folder = Path(os.path.abspath(path))
        if not folder.is_relative_to(self.root) or folder == self.root:
            raise StoreError(f"`{folder}` is not below `{self.root}` and must not be removed")
        aside = folder.with_name(f".{folder.name}.removed.{os.getpid()}.{os.urandom(3).hex()}")
        try:
            with self.shared.opened(folder.parent) as parent:
                if not stat.S_ISDIR(os.stat(folder.name, dir_fd=parent, follow_symlinks=False).st_mode):
                    os.unlink(folder.name, dir_fd=parent)
                    return None
                if LEFT.fullmatch(folder.name):
                    return folder
                os.rename(folder.name, aside.name, src_dir_fd=parent, dst_dir_fd=parent)
        except FileNotFoundError:
            return None
        except OSError as error:
            error.filename = str(folder)
            raise disk_error(error, folder) from error
        return aside

    def delete(self, trash: Path | None) -> None:
        """Delete what `set_aside` renamed.

        Raises:
            StoreError: it cannot be deleted.
        """
        if trash is None:
            return
        try:
            self.shared.remove(trash)
        except PermissionError as error:
            # What another admin wrote can be moved away, but only that admin can delete it: `sweep` does so then.
            if trash.lstat().st_uid == os.geteuid():
                raise disk_error(error, trash) from error
        except OSError as error:
            raise disk_error(error, trash) from error

    def make_jobs(self) -> None:
        """Make this user's folder of job scripts and their output, which no other user can write.

        Raises:
            StoreError: the folder cannot be made, or another user made it.
        """
        self._make_own(self.jobs)

    def installer_caches(self) -> dict[str, str]:
        """The variables with which pip and uv keep what they unpack below the root instead of in a home.

        Raises:
            StoreError: the folder cannot be made, or another user made it.
        """
        folder = Path(self.layout.installers(user_name(os.geteuid())))
        self._make_own(folder)
        return {"UV_CACHE_DIR": str(folder / "uv"), "PIP_CACHE_DIR": str(folder / "pip")}

    def _make_own(self, folder: Path) -> None:
        """Make a folder that only this user can write."""
        self.shared.make(folder.parent)
        with disk_errors(self.root):
            folder.mkdir(mode=0o755, exist_ok=True)
            status = folder.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
            raise StoreError(
                f"`{folder}` is not a folder that only `{user_name(os.geteuid())}` can write",
                evidence=[f"owner: {user_name(status.st_uid)}, mode {stat.S_IMODE(status.st_mode):o}"],
                hint=f"`{bash('mv %s %s', str(folder), f'{folder}.old')}`, then run the same command again",
                kind="untrusted",
            )

    def make_test_folder(self, tests: Path, *, below: Path | None = None) -> Path:
        """Make the folder of one more proof below a folder of tests; it is named with the time. `below`: see `make`.

        Raises:
            StoreError: the folder cannot be made.
        """
        folder = tests / f"{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}"
        with disk_errors(folder):
            self.shared.make(tests, below=below)
            folder.mkdir()
        return folder

    def activation_of(self, arch: str, module: str) -> str | None:
        """The file to source for what users get by this module; None if it is not published."""
        published = self.pointers().get(f"{arch}/{module}")
        return str(self.layout.records_folder(EnvironmentId.parse(published)) / "activate.sh") if published else None

    def activation(self, env: EnvironmentId) -> str:
        """The shell code that loads an environment without a module system.

        Raises:
            StoreError: it is missing or not a file.
        """
        path = Path(self.layout.records_folder(env)) / "activate.sh"
        try:
            content = self.shared.read(path)
            if content is None:
                raise FileNotFoundError(errno.ENOENT, "does not exist", str(path))
            return content.decode()
        except (OSError, UnicodeDecodeError) as error:
            raise StoreError(
                f"`{path}` cannot be used", evidence=[str(error)], hint="`provision build` writes it"
            ) from error

    def sweep(self, env: EnvironmentId) -> None:
        """Remove what killed runs left of this environment: removals that they began, and files that they were writing.

        Needs the lock of the environment; others may be in use by other runs.
        """
        records = Path(self.layout.records_folder(env))
        for folder in (Path(self.layout.prefix(env)), Path(self.layout.build(env))):
            for path in folder.parent.glob(f".{folder.name}.*"):
                self.shared.remove_left(path)
        for place, folders, names in os.walk(records):
            for name in (*folders, *names):
                self.shared.remove_left(Path(place, name))

    def make_readable(self, path: str) -> int:
        """Let all users read everything below `path`, and enter and run what the owner can; only the owner can write it.

        Returns the size of all files in bytes, which needs no second walk of the tree.

        Raises:
            StoreError: a mode cannot be changed: another admin owns the file.
        """

        def readable(mode: int) -> int:
            return (mode | 0o444 | (0o111 if mode & 0o100 else 0)) & ~0o022

        with disk_errors(path):
            return change_mode(path, readable).st_size + change_modes(Path(path), readable)

    def write_receipt(self, env: EnvironmentId, receipt: Receipt) -> None:
        """Record that a step is done."""
        path = Path(self.layout.records_folder(env) / "receipts" / f"{receipt.step}.json")
        write_json(path, receipt.to_dict())

    def read_receipts(self, env: EnvironmentId) -> dict[str, Receipt]:
        """The receipts of the steps that are done, by the name of the step; damaged ones are omitted."""
        receipts = {}
        for path in sorted(Path(self.layout.records_folder(env) / "receipts").glob("*.json")):
            with contextlib.suppress(ValueError):
                receipt = Receipt.from_dict(self.shared.read_json(path) or {})
                if receipt.step == path.stem:
                    receipts[receipt.step] = receipt
        return receipts

    # Locks

    def held(
        self, path: Path, does: JSON, waiting: Waiting | None = None, *, wait: bool = True
    ) -> contextlib.AbstractContextManager[HeldLock]:
        """Hold the lock at `path`: see `locks.held`."""
        return held(self.shared, path, does, waiting, wait=wait)
