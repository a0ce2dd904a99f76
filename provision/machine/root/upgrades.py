"""The upgrade of a stack below the root: its file, its locks, and the change of what users load on all archs or on none.

A run that is killed in that change leaves the state `publishing` or `undoing`; the next run of the verb finishes it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from provision.errors import ConfigError, ProvisionError
from provision.machine.files.disk import remove, write, write_json
from provision.machine.root.generations import Change
from provision.machine.root.publishing import Publisher
from provision.machine.root.store import Store
from provision.machine.sharing.locks import HeldLock
from provision.planning.upgrade_changes import ArchUpgrade, Upgrade, UpgradeState

FILE = "upgrade.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Switched:
    """What became of one arch; without a change, `note` says why users load there what they loaded."""

    arch: ArchUpgrade
    change: Change | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Upgrades:
    """The upgrade of one stack below one root."""

    store: Store
    stack: str

    @property
    def folder(self) -> Path:
        """Where everything of the upgrade is."""
        return Path(self.store.layout.upgrade(self.stack))

    @property
    def newer(self) -> Path:
        """The folder of the newer locks."""
        return self.folder / "after"

    def held(self) -> contextlib.AbstractContextManager[HeldLock]:
        """The lock under which a stack is upgraded.

        Raises:
            StoreError: another process upgrades it.
        """
        path = self.store.root / "locks" / f"upgrade-{self.stack}.lock"
        return self.store.held(path, {"does": f"upgrades {self.stack}"}, wait=False)

    def read(self) -> Upgrade | None:
        """The last upgrade; None if there was none.

        Raises:
            StoreError: its file is damaged, or a newer version wrote it.
        """
        path = self.folder / FILE
        hint = f"`rm {path}`, then `provision upgrade` makes a new one; `provision rollback` goes back on one arch"
        return self.store.shared.read_record(path, Upgrade.from_dict, hint)

    def begin(self, upgrade: Upgrade, newer: Path) -> Upgrade:
        """Keep the locks of the folder `newer`, and those that they replace.

        Raises:
            StoreError: they cannot be written.
        """
        texts = {path.name: text_of(newer / path.name) or "" for path in map(Path, upgrade.locks)}
        for folder in (self.newer, self.folder / "before"):
            self.store.shared.make(folder)
            for path in folder.iterdir():
                remove(path)
        for path in map(Path, upgrade.locks):
            old = text_of(path)
            if old is not None:
                write(self.folder / "before" / path.name, old)
            write(self.newer / path.name, texts[path.name])
        return self.keep(upgrade, "building")

    def kept(self, locks: Sequence[Path]) -> dict[str, str]:
        """The newer locks of an upgrade that did not end, if they are all there and replace what is there now."""
        texts = {path.name: self._read(self.newer / path.name) for path in locks}
        same = all(self._read(self.folder / "before" / path.name) == text_of(path) for path in locks)
        whole = {name: text for name, text in texts.items() if text is not None}
        return whole if same and len(whole) == len(texts) else {}

    def keep(self, upgrade: Upgrade, state: UpgradeState) -> Upgrade:
        """Write the file of the upgrade.

        Raises:
            StoreError: it cannot be written.
        """
        upgrade = dataclasses.replace(upgrade, state=state)
        self.store.shared.make(self.folder)
        write_json(self.folder / FILE, upgrade.to_dict())
        return upgrade

    def publish(self, upgrade: Upgrade) -> list[Switched]:
        """Let users load the newer environments on all archs; if one arch fails, on none.

        Raises:
            StoreError: an environment is not proved, or a generation or a lock cannot be written.
        """
        publisher = Publisher(self.store)
        for arch in upgrade.archs:
            publisher.preview(arch.after)  # it raises if there is no proof
        upgrade = self.keep(upgrade, "publishing")
        done: list[Switched] = []
        try:
            self._put_locks(upgrade, "after")
            for arch in upgrade.archs:
                done.append(Switched(arch=arch, change=publisher.publish(arch.after)))
        except ProvisionError:
            for one in reversed(done):
                self._take_back(publisher, one.arch)
            self._put_locks(upgrade, "before")
            self.keep(upgrade, "building")
            raise
        self.keep(upgrade, "published")
        return done

    def undo(self, upgrade: Upgrade) -> list[Switched]:
        """Let users load again what they loaded before the upgrade, on every arch on which they still load what it brought.

        Raises:
            StoreError: an environment of before is gone or broken; then nothing is changed.
        """
        publisher = Publisher(self.store)
        loads = self.store.pointers()
        still = [arch for arch in upgrade.archs if loads.get(arch.after.pointer) == str(arch.after)]
        for arch in still:
            if arch.before is not None:
                publisher.preview(arch.before)
        upgrade = self.keep(upgrade, "undoing")
        done = []
        for arch in upgrade.archs:
            if arch in still:
                done.append(Switched(arch=arch, change=self._take_back(publisher, arch)))
            else:
                now = loads.get(arch.after.pointer)
                note = None if now == str(arch.before) else f"users load {now or 'nothing'} meanwhile, which stays"
                done.append(Switched(arch=arch, note=note))
        self._put_locks(upgrade, "before")
        self.keep(upgrade, "undone")
        return done

    def _take_back(self, publisher: Publisher, arch: ArchUpgrade) -> Change:
        return publisher.publish(arch.before) if arch.before else publisher.unpublish(arch.after)

    def _put_locks(self, upgrade: Upgrade, which: str) -> None:
        """Write the locks of after, or of before, into the configuration; one that another run changed meanwhile stays."""
        other = {"after": "before", "before": "after"}[which]
        for path in map(Path, upgrade.locks):
            wanted, now = self._read(self.folder / which / path.name), text_of(path)
            if wanted is not None and now != wanted and now == self._read(self.folder / other / path.name):
                write(path, wanted)

    def _read(self, path: Path) -> str | None:
        content = self.store.shared.read(path)
        return None if content is None else content.decode("utf-8", "replace")


def text_of(path: Path) -> str | None:
    """The text of a file; None if there is none."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def refuse_unwritable(locks: Sequence[Path], stack: str) -> None:
    """Raise a `ConfigError` if the newer locks could not be written beside their inputs."""
    for folder in dict.fromkeys(path.parent for path in locks):
        if not os.access(folder, os.W_OK):
            raise ConfigError(
                f"`{folder}` has the locks of `{stack}`, and you cannot write there",
                hint=f"copy `{folder}/{stack}.in` and its locks to `requirements/` of your own configuration folder "
                "(`$PROVISION_CONFIG`), then run the same command again",
            )
