"""What environments have in common below the root: downloaded packages, and compiled wheels of Horovod.

A receipt next to the packages of the wheelhouse names each lock whose packages were all fetched. It is written last, so a killed
`fetch` leaves no receipt. A wheel is in a folder named like its key, with a `wheel.json` that has its hash.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from provision.errors import StoreError
from provision.machine.files.beneath import new_folder
from provision.machine.files.disk import disk_error, disk_errors, has_sha256, sha256_of, size_of, sync_tree, write_json
from provision.machine.sharing.locks import held
from provision.machine.sharing.shared_root import SharedRoot
from provision.model.quoting import bash


@dataclass(frozen=True, slots=True)
class Downloads:
    """The downloads below one root."""

    shared: SharedRoot

    @property
    def wheelhouse(self) -> Path:
        """The folder of fetched packages."""
        return Path(self.shared.layout.wheelhouse)

    def fetched(self) -> dict[str, tuple[Path, ...]]:
        """The packages of each lock whose packages are all in the wheelhouse with their full size, by the lock's sha256."""
        found = {}
        for path in self.wheelhouse.glob("*.json"):
            files = (self.shared.read_json(path) or {}).get("files")
            if isinstance(files, dict) and all(size_of(self.wheelhouse / name) == size for name, size in files.items()):
                found[path.stem] = tuple(self.wheelhouse / name for name in files)
        return found

    def sources(self) -> frozenset[str]:
        """The names of the downloaded source packages."""
        return frozenset(path.name for path in Path(self.shared.layout.sources).glob("[!.]*"))

    def keep_fetched(self, folder: Path, sha256: str, lock: str) -> None:
        """Move the downloaded packages of a lock to the wheelhouse, then write its receipt.

        Raises:
            StoreError: the wheelhouse cannot be written.
        """
        sizes = {}
        with disk_errors(self.wheelhouse):
            for file in sorted(folder.iterdir()):
                sizes[file.name] = file.stat().st_size
                file.chmod(0o644)
                file.replace(self.wheelhouse / file.name)
        receipt = {"lock": Path(lock).name, "files": sizes}
        write_json(self.wheelhouse / f"{sha256}.json", receipt)

    def keep_source(self, folder: str, path: str, hashes: tuple[str, ...]) -> None:
        """Check a downloaded source package against the hashes of the lock, and copy it to `path`.

        Raises:
            StoreError: no file has one of the hashes, or `path` cannot be written.
        """
        matching = [file for file in Path(folder).glob("*") if f"sha256:{sha256_of(file)}" in hashes]
        if not matching:
            raise StoreError(
                f"no file downloaded to `{folder}` has a hash of the lock",
                evidence=[*(f"{file.name} sha256:{sha256_of(file)}" for file in Path(folder).glob("*")), *hashes],
                hint="the package index no longer serves the locked file: check the index, then run `provision lock NAME`",
            )
        target = Path(path)
        self.shared.make(target.parent)
        with disk_errors(target):
            beside = target.with_name(f".{target.name}.{os.getpid()}.{os.urandom(3).hex()}")
            shutil.copyfile(matching[0], beside)
            beside.chmod(0o644)
            beside.replace(target)

    def has_source(self, path: str, hashes: tuple[str, ...]) -> bool:
        """Whether the source package exists and has a hash of the lock."""
        return has_sha256(Path(path), *(text.removeprefix("sha256:") for text in hashes))


@dataclass(frozen=True, slots=True)
class Wheels:
    """The wheels below one root. `remove` removes a folder below the root."""

    shared: SharedRoot
    remove: Callable[[str], None]

    def keep(self, folder: str, key: str, abi: Mapping[str, object]) -> None:
        """Move the one wheel in `folder` into the cache. If a wheel with this key exists, nothing changes.

        Raises:
            StoreError: the folder does not contain exactly one wheel, or the cache cannot be written.
        """
        wheels = list(Path(folder).glob("*.whl"))
        if len(wheels) != 1:
            raise StoreError(f"`{folder}` contains {len(wheels)} wheels instead of one")
        target = Path(self.shared.layout.wheel(key))
        if self.has(key):
            return
        self.shared.make(target.parent)
        with held(self.shared, Path(self.shared.layout.root) / "locks" / f"wheel-{key}.lock", {"does": f"keeps {key}"}):
            for left in target.parent.glob(f".{target.name}.*"):
                with contextlib.suppress(OSError):
                    self.shared.remove(left)  # of a killed run: we hold the lock
            self._keep(wheels[0], target, key, abi)

    def _keep(self, wheel: Path, target: Path, key: str, abi: Mapping[str, object]) -> None:
        """Copy a wheel beside its place in the cache, and rename it."""
        with disk_errors(target):
            beside = new_folder(target.parent, f".{target.name}.")
        try:
            kept = Path(shutil.copy2(wheel, beside / wheel.name))
            content = {"file": kept.name, "sha256": sha256_of(kept), "bytes": kept.stat().st_size, "abi": abi}
            write_json(beside / "wheel.json", content)
            self.remove(str(target))  # damaged
            sync_tree(beside)  # before it gets the name that speaks for it
            beside.rename(target)
        except OSError as error:
            with contextlib.suppress(OSError):
                self.shared.remove(beside)
            if not self.has(key):
                raise disk_error(error, target) from error

    def find(self, key: str) -> Path:
        """The cached wheel of this key, after a check of its hash.

        Raises:
            StoreError: the wheel is missing or damaged.
        """
        folder = Path(self.shared.layout.wheel(key))
        path, size, sha256 = self._described(key)
        if size is None:
            reason = "`wheel.json` is missing or damaged"
        elif size_of(path) != size:
            reason = f"`{path.name}` has {size_of(path)} bytes instead of {size}"
        elif not has_sha256(path, sha256):
            reason = f"`{path.name}` does not have the hash in `wheel.json`"
        else:
            return path
        raise StoreError(
            f"the cached wheel in `{folder}` is damaged",
            evidence=[reason],
            hint=f"`{bash('rm -r %s', str(folder))}`, then run the same command again: it compiles a new one",
        )

    def _described(self, key: str) -> tuple[Path, int | None, str]:
        """The wheel of this key, its size and hash as its `wheel.json` has them; no size if that is missing or damaged."""
        folder = Path(self.shared.layout.wheel(key))
        content = self.shared.read_json(folder / "wheel.json") or {}
        name, size, sha256 = content.get("file"), content.get("bytes"), content.get("sha256")
        if not isinstance(name, str) or not isinstance(size, int) or not isinstance(sha256, str):
            return folder, None, ""
        return folder / Path(name).name, size, sha256

    def has(self, key: str) -> bool:
        """Whether the cache has a wheel of this key with its full size; its hash is checked before it is used."""
        path, size, _ = self._described(key)
        return size is not None and size_of(path) == size
