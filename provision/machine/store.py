"""The root of a site on disk.

Every file is written under a temporary name next to its final path, and then renamed. Publishing is one rename of one
symbolic link. Locks are `flock` locks of the kernel: they end with the processes that hold them, so a crash leaves none
behind; a shared file system must support locks between nodes (Lustre: mounted with `flock`).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pwd
import shutil
import socket
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath

from provision.errors import StoreError
from provision.machine.disk import JSON, disk_error, read_json, sha256_of, write
from provision.machine.downloads import Downloads
from provision.model.facts import Existing, Place
from provision.model.layout import KINDS, EnvironmentId, Layout
from provision.model.receipt import Receipt
from provision.model.record import Record
from provision.schedulers import job_here


@dataclass(frozen=True, slots=True)
class Store:
    """The files below one root."""

    layout: Layout

    @property
    def root(self) -> Path:
        """The root as a path on this machine."""
        return Path(self.layout.root)

    @property
    def downloads(self) -> Downloads:
        """The downloads below this root."""
        return Downloads(self.layout)

    # Reading

    def place(self) -> Place:
        """Whether the root is writable, and the free space of its file system; the root need not exist."""
        folder = self.root
        # os.path.exists, not Path.exists, which raises for a path in another user's private folder.
        while not os.path.exists(folder) and folder != folder.parent:  # noqa: PTH110
            folder = folder.parent
        status = os.statvfs(folder)
        return Place(
            path=str(self.root),
            writable=folder.is_dir() and os.access(folder, os.W_OK | os.X_OK) and not status.f_flag & os.ST_RDONLY,
            free_bytes=status.f_bavail * status.f_frsize,
            # File systems without a fixed number of inodes (btrfs, some parallel ones) report 0.
            free_inodes=status.f_favail if status.f_files else None,
        )

    def environments(self) -> list[EnvironmentId]:
        """Every environment that has a prefix, finished or not."""
        environments = []
        for path in sorted((self.root / "envs").glob("*/*/[!.]*-*")):
            with contextlib.suppress(ValueError):
                environments.append(EnvironmentId.parse("/".join(path.parts[-3:])))
        return environments

    def receipts(self, env: EnvironmentId) -> frozenset[str]:
        """The steps of this environment that are done."""
        return frozenset(path.stem for path in Path(self.layout.records_folder(env) / "receipts").glob("*.json"))

    def pointers(self) -> dict[str, str]:
        """`<arch>/<name>/<version>` to the environment that users get when they load that module."""
        pointers = {}
        for path in sorted((self.root / "modules").glob("*/environments/*/*")):
            with contextlib.suppress(OSError):
                pointers["/".join((path.parts[-4], *path.parts[-2:]))] = path.read_text(encoding="utf-8").strip()
        return pointers

    def existing(self) -> Existing:
        """Everything below the root that the planner needs to know."""
        return Existing(
            receipts={str(env): self.receipts(env) for env in self.environments()},
            wheels=frozenset(path.parent.name for path in (self.root / "wheels").glob("*/wheel.json")),
            pointers=self.pointers(),
            fetched=self.downloads.fetched(),
            sources=self.downloads.sources(),
        )

    def record(self, env: EnvironmentId) -> Record | None:
        """The record of an environment; None until it is published.

        Raises:
            StoreError: the record is damaged.
        """
        path = Path(self.layout.records_folder(env) / "record.json")
        data = read_json(path)
        try:
            return None if data is None else Record.from_dict(data)
        except ValueError as error:
            raise StoreError(
                f"`{path}` is damaged, or was written by another version",
                evidence=[str(error)],
                hint="restore it from a backup, or remove the environment and build it again",
                kind="damaged-record",
            ) from error

    def records(self) -> list[JSON]:
        """The records of all environments that have one that is not damaged, as JSON."""
        found = []
        for env in self.environments():
            with contextlib.suppress(StoreError):
                record = self.record(env)
                found += [record.to_dict()] if record else []
        return found

    # Writing

    def remove(self, path: str) -> None:
        """Remove a folder below the root, if it exists: rename it first, then delete its contents.

        Raises:
            StoreError: the folder is not below the root, or cannot be removed.
        """
        folder = Path(os.path.abspath(path))
        if not folder.is_relative_to(self.root) or folder == self.root:
            raise StoreError(f"`{folder}` is not below `{self.root}` and must not be removed")
        if not folder.exists() and not folder.is_symlink():
            return
        try:
            if folder.is_symlink():
                folder.unlink()
                return
            trash = folder.with_name(f".{folder.name}.removed.{os.getpid()}.{os.urandom(3).hex()}")
            folder.rename(trash)
            shutil.rmtree(trash)
        except OSError as error:
            raise disk_error(error, folder) from error

    def make_jobs(self) -> None:
        """Make the folder of job scripts and their output.

        Raises:
            StoreError: the folder cannot be made.
        """
        try:
            Path(self.layout.jobs).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise disk_error(error, self.root) from error

    def make_test_folder(self, tests: PurePath) -> Path:
        """Make the folder of one more proof below a folder of tests; it is named with the time."""
        folder = Path(tests) / f"{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}"
        folder.mkdir(parents=True)
        return folder

    def activation(self, env: EnvironmentId) -> str:
        """The shell code that loads an environment without a module system."""
        return (Path(self.layout.records_folder(env)) / "activate.sh").read_text(encoding="utf-8")

    def sweep(self, prefix: str) -> None:
        """Finish the removals of this prefix that a killed run began; other prefixes may be in use by other runs."""
        folder = Path(prefix)
        for trash in folder.parent.glob(f".{folder.name}.removed.*"):
            shutil.rmtree(trash, ignore_errors=True)

    def make_readable(self, path: str) -> int:
        """Let all users read everything below `path`, and enter and run what the owner can enter and run.

        Returns the size of all files in bytes, which needs no second walk of the tree.

        Raises:
            StoreError: a mode cannot be changed.
        """
        size = 0
        try:
            for folder, _, names in os.walk(path):
                for file in (Path(folder), *(Path(folder) / name for name in names)):
                    status = file.lstat()
                    mode, size = status.st_mode, size + status.st_size
                    wanted = mode | 0o444 | (0o111 if mode & 0o100 else 0)
                    if wanted != mode and not stat.S_ISLNK(mode):
                        file.chmod(stat.S_IMODE(wanted))
        except OSError as error:
            raise disk_error(error, path) from error
        return size

    def write_receipt(self, env: EnvironmentId, receipt: Receipt) -> None:
        """Record that a step is done."""
        path = Path(self.layout.records_folder(env) / "receipts" / f"{receipt.step}.json")
        write(path, json.dumps(receipt.to_dict(), indent=1) + "\n")

    def read_receipts(self, env: EnvironmentId) -> dict[str, Receipt]:
        """The receipts of the steps that are done, by the name of the step; damaged receipts are omitted."""
        receipts = {}
        for step in sorted(self.receipts(env)):
            data = read_json(Path(self.layout.records_folder(env) / "receipts" / f"{step}.json"))
            with contextlib.suppress(ValueError):
                receipts[step] = Receipt.from_dict(data or {})
        return receipts

    def keep_wheel(self, folder: str, key: str, abi: Mapping[str, object]) -> None:
        """Move the one wheel in `folder` into the cache. If a wheel with this key exists, nothing changes.

        Raises:
            StoreError: the folder does not contain exactly one wheel, or the cache cannot be written.
        """
        wheels = list(Path(folder).glob("*.whl"))
        if len(wheels) != 1:
            raise StoreError(f"`{folder}` contains {len(wheels)} wheels instead of one")
        target = Path(self.layout.wheel(key))
        if (target / "wheel.json").is_file():
            return
        beside = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            beside.mkdir(parents=True, exist_ok=True)
            kept = Path(shutil.copy2(wheels[0], beside / wheels[0].name))
            content = {"file": kept.name, "sha256": sha256_of(kept), "bytes": kept.stat().st_size, "abi": abi}
            write(beside / "wheel.json", json.dumps(content, indent=1) + "\n")
            if target.exists():  # without its wheel.json: a user changed it
                shutil.rmtree(target)
            beside.rename(target)
        except OSError as error:
            with contextlib.suppress(OSError):
                shutil.rmtree(beside)
            if not (target / "wheel.json").is_file():
                raise disk_error(error, target) from error

    def wheel(self, key: str) -> Path:
        """The cached wheel of this key, after a check of its hash.

        Raises:
            StoreError: the wheel is missing or damaged.
        """
        folder = Path(self.layout.wheel(key))
        content = read_json(folder / "wheel.json") or {}
        path = folder / str(content.get("file"))
        if not path.is_file() or sha256_of(path) != content.get("sha256"):
            raise StoreError(
                f"the cached wheel in `{folder}` is missing or damaged", hint=f"`rm -r {folder}`, then build again"
            )
        return path

    def publish(self, env: EnvironmentId, files: Mapping[str, str]) -> None:
        """Publish these files (relative path to text) for users of the arch with one rename.

        A new generation is written to its own folder: everything that was published before, and these files. Then the
        symbolic link `modules/<arch>` is replaced. Before that rename users see none of the new files, after it all of them.

        Raises:
            StoreError: the generation cannot be written, or the file system has no locks.
        """
        pointer, generations = Path(self.layout.modules(env.arch)), Path(self.layout.generations(env.arch))
        with self.held(self.root / "locks" / f"publish-{env.arch}.lock", {"does": f"publishes {env}"}):
            beside = generations / f".next.{os.getpid()}"
            try:
                generations.mkdir(parents=True, exist_ok=True)
                number = 1 + max((int(path.name) for path in generations.iterdir() if path.name.isdigit()), default=0)
                if beside.exists():
                    shutil.rmtree(beside)
                if pointer.is_dir():
                    shutil.copytree(pointer, beside, symlinks=True)
                for kind in KINDS:
                    (beside / kind).mkdir(parents=True, exist_ok=True)
                for name, text in files.items():
                    write(beside / name, text)
                write(beside / "environments" / env.name / env.version, f"{env}\n")
                beside.rename(generations / f"{number:06d}")
                link = pointer.with_name(f".{pointer.name}.{os.getpid()}")
                link.unlink(missing_ok=True)
                link.symlink_to(Path(".generations") / env.arch / f"{number:06d}")
                link.replace(pointer)
            except OSError as error:
                shutil.rmtree(beside, ignore_errors=True)
                raise disk_error(error, pointer) from error

    # Locks

    def holder(self, path: Path) -> JSON | None:
        """The holder of the lock at `path`, or None. This only looks: it makes no lock and holds none afterwards."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return read_json(path) or {}
        except OSError:
            return None  # the file system has no locks; a build reports that
        finally:
            os.close(descriptor)
        return None

    @contextlib.contextmanager
    def held(
        self, path: Path, holder: JSON, on_wait: Callable[[JSON], None] | None = None, *, wait: bool = True
    ) -> Iterator[int]:
        """Hold the lock at `path`; yields its file descriptor, which child processes can inherit.

        If another process holds the lock, `on_wait` is called once with its holder; if `wait` is false, that is an error.

        Raises:
            StoreError: another process holds the lock, or the file system has no locks.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o664)
        except OSError as error:
            raise disk_error(error, path.parent) from error
        try:
            reported = False
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    other = read_json(path) or {}
                    if not wait:
                        raise StoreError(
                            f"this is already being built: {describe_holder(other)}",
                            evidence=[f"lock: {path}"],
                            hint="wait for it (omit `--no-wait`), or end that process",
                            kind="locked",
                        ) from None
                    if on_wait and not reported:
                        on_wait(other)
                    reported = True
                    time.sleep(0.5)
                except OSError as error:
                    raise StoreError(
                        f"the file system of `{path}` has no locks: {error.strerror}",
                        hint="mount it with locks between nodes (Lustre: `-o flock`), or move `root` to another file system",
                    ) from error
            who = {
                "user": user_name(),
                "host": socket.gethostname(),
                "pid": os.getpid(),
                "job": job_here(os.environ),
                "since": utc_now(),
                **holder,
            }
            try:
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, json.dumps(who).encode(), 0)
            except OSError as error:
                raise disk_error(error, path.parent) from error
            yield descriptor
        finally:
            os.close(descriptor)


def utc_now() -> str:
    """The time, ISO 8601 in UTC: `2026-11-22T01:02:03+00:00`."""
    return time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())


def user_name() -> str:
    """The name of this user; the number, if the system knows no name."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def describe_holder(holder: JSON) -> str:
    """The holder of a lock as a phrase: `alice on n1, process 123, job 45, since …`.

    If that process has ended, its child processes hold the lock.
    """
    pid = holder.get("pid")
    if holder.get("host") == socket.gethostname() and pid and not os.path.exists(f"/proc/{pid}"):  # noqa: PTH110
        return f"child processes of the killed process {pid} of {holder.get('user', 'an unknown user')}"
    job = f", job {holder['job']}" if holder.get("job") else ""
    place = f"{holder.get('host', 'an unknown host')}, process {holder.get('pid', '?')}{job}"
    return f"{holder.get('user', 'an unknown user')} on {place}, since {holder.get('since', 'an unknown time')}"
