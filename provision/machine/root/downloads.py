"""The downloads below the root: source packages, and the wheelhouse of packages for nodes without network.

A receipt next to the packages names each lock whose packages were all fetched. It is written last, so a killed `fetch` leaves
no receipt.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from provision.errors import StoreError
from provision.machine.files.disk import disk_error, has_sha256, sha256_of, size_of, write
from provision.machine.sharing.shared_root import SharedRoot


@dataclass(frozen=True, slots=True)
class Downloads:
    """The downloads below one root."""

    shared: SharedRoot

    @property
    def wheelhouse(self) -> Path:
        """The folder of fetched packages."""
        return Path(self.shared.layout.wheelhouse)

    def fetched(self) -> frozenset[str]:
        """The sha256 of each lock whose packages are all in the wheelhouse with their full size."""
        locks = set()
        for path in self.wheelhouse.glob("*.json"):
            files = (self.shared.read_json(path) or {}).get("files")
            if isinstance(files, dict) and all(size_of(self.wheelhouse / name) == size for name, size in files.items()):
                locks.add(path.stem)
        return frozenset(locks)

    def files_of(self, sha256: str) -> tuple[Path, ...]:
        """The packages of the lock with this hash, if all of them are in the wheelhouse; empty if not."""
        if sha256 not in self.fetched():
            return ()
        files = (self.shared.read_json(self.wheelhouse / f"{sha256}.json") or {}).get("files")
        return tuple(self.wheelhouse / name for name in files) if isinstance(files, dict) else ()

    def sources(self) -> frozenset[str]:
        """The names of the downloaded source packages."""
        return frozenset(path.name for path in Path(self.shared.layout.sources).glob("[!.]*"))

    def keep_fetched(self, folder: Path, sha256: str, lock: str) -> None:
        """Move the downloaded packages of a lock to the wheelhouse, then write its receipt.

        Raises:
            StoreError: the wheelhouse cannot be written.
        """
        sizes = {}
        try:
            for file in sorted(folder.iterdir()):
                sizes[file.name] = file.stat().st_size
                file.chmod(0o644)
                file.replace(self.wheelhouse / file.name)
        except OSError as error:
            raise disk_error(error, self.wheelhouse) from error
        receipt = {"lock": Path(lock).name, "files": sizes}
        write(self.wheelhouse / f"{sha256}.json", json.dumps(receipt, indent=1) + "\n")

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
        try:
            descriptor, beside = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
            with os.fdopen(descriptor, "wb") as file, matching[0].open("rb") as source:
                shutil.copyfileobj(source, file)
                os.fchmod(file.fileno(), 0o644)
            Path(beside).replace(target)
        except OSError as error:
            raise disk_error(error, target) from error

    def has_source(self, path: str, hashes: tuple[str, ...]) -> bool:
        """Whether the source package exists and has a hash of the lock."""
        return has_sha256(Path(path), *(text.removeprefix("sha256:") for text in hashes))
