"""Publish, take back and roll back: what users of an arch load changes with one rename, in a fraction of a second.

The modulefiles are written from the description in the prefix of each environment, so no plan is needed.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from provision.errors import StoreError
from provision.machine.rendering.render_modulefile import emit_modulefile, emit_modulerc
from provision.machine.root.generations import Change
from provision.machine.root.image_only import drop_files
from provision.machine.root.sealing import read_description
from provision.machine.root.store import Store
from provision.model.generation import Generation
from provision.model.layout import KINDS, EnvironmentId, modulefile_path
from provision.model.record import Record
from provision.planning.publication import Marks, publish, rollback_target, unpublish

MODULERC = {"lua": ".modulerc.lua", "tcl": ".modulerc"}


@dataclass(frozen=True, slots=True)
class Publisher:
    """Changes what users load below one root."""

    store: Store

    def publish(self, env: EnvironmentId, marks: Marks | None = None) -> Change:
        """Let users who load the module of this environment get it; one that is kept as its image only loses its files before.

        Raises:
            StoreError: it has no record, its files cannot be removed, or the generation cannot be written.
        """
        self._record(env)
        drop_files(self.store, env)
        return self.store.generations.change(
            env.arch,
            lambda now: publish(now, env, marks or Marks()),
            # The record is read under the lock: `prune` takes it too before it removes an environment.
            lambda before, after: self.files(env, self._record(env), before, after),
        )

    def unpublish(self, env: EnvironmentId) -> Change:
        """Take the module of this environment away from users; the environment stays.

        Raises:
            ConfigError: it is not published.
            StoreError: the generation cannot be written.
        """
        return self.store.generations.change(env.arch, lambda now: unpublish(now, env), _modulercs)

    def roll_back(self, arch: str, to: int | None) -> Change:
        """Go back to the generation before the current one, or to the one with this number.

        Raises:
            ConfigError: there is none, or environments of it are gone.
            StoreError: the link cannot be replaced.
        """
        return self.store.generations.roll_back(arch, lambda current, found: self.target(arch, current, found, to))

    def target(self, arch: str, current: int | None, found: Mapping[int, Generation], to: int | None) -> int:
        """The number of the generation to go back to. Raises as `roll_back`."""
        return rollback_target(current, found, self._whole(arch), to, arch)

    def preview(self, env: EnvironmentId, marks: Marks | None = None) -> tuple[Generation, Generation, list[str]]:
        """What `publish` would change: the generation now, the one after it, and the differences of the modulefiles.

        Raises:
            StoreError: as of `publish`.
        """
        before = self.store.generations.published(env.arch)
        after = publish(before, env, marks or Marks())
        return before, after, self.diff(env.arch, self.files(env, self._record(env), before, after))

    def files(self, env: EnvironmentId, record: Record, before: Generation, after: Generation) -> dict[str, str | None]:
        """The files of a generation that publishing this environment writes; None removes a file."""
        modulefile = read_description(self.store, env).modulefile
        module = f"{env.name}/{env.version}"
        deprecation = after.deprecated.get(module)
        facts = modulefile.facts
        if record.forced:
            facts = (*facts, ("published by force", record.forced))
        if deprecation:
            facts = (*facts, ("deprecated", f"{deprecation.date}: {deprecation.text}"))
        shown = dataclasses.replace(modulefile, facts=facts)
        warning = f"{module} {deprecation.warning}" if deprecation else None
        files: dict[str, str | None] = {
            str(modulefile_path(PurePosixPath(kind), kind, modulefile.name, modulefile.version)): emit_modulefile(
                shown, kind, record.proof, warning=warning
            )
            for kind in KINDS
        }
        return {**files, **_modulercs(before, after)}

    def diff(self, arch: str, files: Mapping[str, str | None]) -> list[str]:
        """The differences between the modulefiles that users load and these, as a unified diff; new files are left out."""
        pointer = self.store.generations.pointer(arch)
        lines: list[str] = []
        for name, text in files.items():
            try:
                old = (pointer / name).read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue
            lines += difflib.unified_diff(
                old.splitlines(), (text or "").splitlines(), f"{name} (now)", f"{name} (new)", lineterm="", n=0
            )
        return lines

    def _record(self, env: EnvironmentId) -> Record:
        record = self.store.record(env)
        if record is None:
            raise StoreError(
                f"`{env}` has not passed its proof, so it cannot be published",
                evidence=[f"done: {', '.join(sorted(self.store.receipts(env))) or 'nothing'}"],
                kind="unproved",
            )
        return record

    def _whole(self, arch: str) -> frozenset[str]:
        """The environments of an arch that are there with a record."""
        envs = [env for env in self.store.environments() if env.arch == arch]
        return frozenset(
            str(env) for env in envs if Path(self.store.layout.records_folder(env), "record.json").is_file()
        )


def _modulercs(before: Generation, after: Generation) -> dict[str, str | None]:
    """The files that choose default versions and hide modules; None removes one that is not needed any more."""
    files: dict[str, str | None] = {}
    for name in dict.fromkeys((*before.names(), *after.names())):
        for kind in KINDS:
            marked = name in after.defaults or any(
                module.rpartition("/")[0] == name for module in (*after.hidden, *after.deprecated)
            )
            files[f"{kind}/{name}/{MODULERC[kind]}"] = emit_modulerc(after, name, kind) if marked else None
    return files
