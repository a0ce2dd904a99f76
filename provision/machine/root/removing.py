"""Remove environments, and what no environment needs: first looked at, then removed one after the other.

An environment disappears with one rename, under its own lock and that of its arch, so nobody builds or publishes it meanwhile.
If a removal is interrupted, the rest of the renamed folder is removed by the next one; published modules never point to it.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from provision.errors import NewerError, StoreError
from provision.machine.files.disk import JSON, json_object, record_error, write
from provision.machine.files.who_may_write import user_name
from provision.machine.programs.process_tree import processes_below
from provision.machine.root.spack import uninstall, unused_packages
from provision.machine.root.store import Store
from provision.machine.sharing.claims import describe_holder
from provision.machine.sharing.locks import Waiting, holder, is_left
from provision.machine.sharing.shared_root import LEFT
from provision.model.generation import Generation
from provision.model.layout import EnvironmentId
from provision.model.manifest import HEAD, ManifestHead
from provision.model.plan import Description
from provision.model.record import Receipt, Record
from provision.planning.removal import Leftover, RemovalDecision, Resident, Usage
from provision.schedulers.status import RunningJob

# Where runs write beside what they replace, and rename what they remove.
TRASH = (
    *("envs/*/*/.*", "envs/*/*/[!.]*/.provision/.*", "wheels/.*", "modules/.*", "modules/.generations/*/.*"),
    *("build/*/.*", "logs/*/.*", "logs/*/*/.*", "verified/*/.*", "pins/*/.*", "locks/.*"),
    *("upgrades/*/.*", "upgrades/*/*/.*"),
)
READ: Mapping[str, Callable[[JSON], Record | Description | ManifestHead | Receipt]] = {
    "record.json": Record.from_dict,
    "description.json": Description.from_dict,
    HEAD: ManifestHead.from_dict,
}
"""How the records of an environment are read; everything else is a receipt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loads:
    """What users of an arch load, what they ever could load, and since when it is so: seconds since 1970."""

    now: Generation
    ever: frozenset[str]
    since: float
    newer: str | None
    """Why only a newer version knows how users load it; None if this one does."""


@dataclass(frozen=True, slots=True)
class Remover:
    """Looks at what is below one root, and removes it.

    `jobs` are the running jobs of the site's scheduler, `usage` is when environments were loaded, if that is known.
    """

    store: Store
    jobs: Sequence[RunningJob] = ()
    usage: Usage | None = None
    _known: dict[Path, tuple[Generation, str | None]] = field(default_factory=dict)

    def residents(self, only: Iterable[EnvironmentId] | None = None) -> list[Resident]:
        """Every environment, or only these, with what decides whether it may go."""
        envs = list(self.store.environments() if only is None else only)
        processes = processes_below([str(self.store.layout.prefix(env)) for env in envs])
        arches = {arch: self._loads(arch) for arch in dict.fromkeys(env.arch for env in envs)}
        return [self._resident(env, processes[str(self.store.layout.prefix(env))], arches[env.arch]) for env in envs]

    def _resident(self, env: EnvironmentId, processes: tuple[str, ...], loads: Loads) -> Resident:
        records, prefix = Path(self.store.layout.records_folder(env)), Path(self.store.layout.prefix(env))
        status = prefix.lstat()
        finished, since = False, status.st_mtime
        with contextlib.suppress(OSError):
            finished, since = True, (records / "record.json").stat().st_mtime
        user = holder(Path(self.store.layout.lock(env)))
        module = f"{env.name}/{env.version}"
        published, ever = str(env) in loads.now.modules.values(), str(env) in loads.ever
        (size, files), wheels, newer = self._look(env, finished=finished)
        return Resident(
            environment=str(env),
            arch=env.arch,
            name=env.name,
            size=size,
            files=files,
            finished=finished,
            age_s=max(0.0, time.time() - since),
            module=module if published else None,
            default=published and loads.now.is_default(module),
            pinned=self.store.pin(env),
            holder=describe_holder(user) if user else None,
            used_by=(*processes, *(self._jobs_since(loads.since) if ever and not published else ())),
            newer=newer or loads.newer,
            wheels=wheels,
            unloaded_s=self.usage.unloaded_s(str(env), time.time()) if self.usage else None,
            foreign=None if os.geteuid() in (0, status.st_uid) else user_name(status.st_uid),
        )

    def _loads(self, arch: str) -> Loads:
        """What users of an arch load, and ever could load."""
        generations, since = self.store.generations, 0.0
        pointer = generations.pointer(arch)
        with contextlib.suppress(OSError):
            since = pointer.lstat().st_mtime
        now, newer = generations.look(pointer)
        old = [self._look_back(generations.folder(arch, number))[0] for number in generations.numbers(arch)]
        ever = frozenset(environment for generation in old for environment in generation.modules.values())
        return Loads(now=now, ever=ever, since=since, newer=newer)

    def _look_back(self, folder: Path) -> tuple[Generation, str | None]:
        """A generation by its number: see `Generations.look`. It is never changed, so it is read once."""
        if folder not in self._known:
            self._known[folder] = self.store.generations.look(folder)
        return self._known[folder]

    def _jobs_since(self, since: float) -> tuple[str, ...]:
        """The running jobs that were there when the modules of the arch changed: they may have loaded what is gone now."""
        passed = time.time() - since
        return tuple(
            f"job {job.job} of {job.user} started before it was taken from users, and may use it"
            for job in self.jobs
            if job.seconds >= passed
        )

    def _look(self, env: EnvironmentId, *, finished: bool) -> tuple[tuple[int, int], frozenset[str], str | None]:
        """Bytes and files of an environment, the wheels that it was built with, and what only a newer version can read."""
        records, found, newer = Path(self.store.layout.records_folder(env)), [], None
        for path in (*map(records.joinpath, READ), *(() if finished else records.glob("receipts/*.json"))):
            try:
                content = json_object(self.store.shared.read(path) or b"{}")
                found.append(READ.get(path.name, Receipt.from_dict)(content))
            except NewerError as error:
                newer = record_error(error, path, "").message
            except (OSError, ValueError):
                continue  # it is missing or damaged
        kept = [one for one in found if isinstance(one, Record | Description)]
        wheels = frozenset(key for one in kept for key in (one.wheel, *one.wheels) if key)
        heads = [(one.size, one.files) for one in found if isinstance(one, ManifestHead)]
        return heads[0] if heads else size_below(Path(self.store.layout.prefix(env))), wheels, newer

    # Pins

    def set_pin(self, env: EnvironmentId, reason: str | None) -> None:
        """Keep an environment for this reason; None lets it go again.

        Raises:
            StoreError: the file cannot be written.
        """
        self.store.shared.refuse_strangers()
        path = Path(self.store.layout.pin(env))
        if reason is None:
            self.store.remove(str(path))
        else:
            write(self.store.shared.make(path.parent) / path.name, f"{reason}\n")

    # What no environment needs

    def leftovers(self, residents: Sequence[Resident], gone: Iterable[str], generations: int) -> list[Leftover]:
        """What is left of interrupted removals and builds, old generations but the newest ones, and unused wheels.

        `gone` are the environments that are removed together with them.
        """
        gone = set(gone)
        stay = [resident for resident in residents if resident.environment not in gone]
        trash = [path for pattern in TRASH for path in self.store.root.glob(pattern) if LEFT.fullmatch(path.name)]
        locks = filter(is_left, self.store.root.glob("locks/[!.]*"))
        found = [
            *self._leftover("trash", trash, "of a run that was interrupted"),
            *self._leftover("lock", locks, "of a process that was killed"),
            *self._of_builds(stay),
            *self._old_generations(generations),
        ]
        # A build that runs needs a wheel that no environment names yet; what a newer version wrote may need any.
        if not any(resident.holder or resident.newer for resident in residents):
            used = {key for resident in stay for key in resident.wheels}
            wheels = [path for path in (self.store.root / "wheels").glob("[!.]*") if path.name not in used]
            found += self._leftover("wheel", wheels, "no environment uses this wheel")
            unused = unused_packages(self.store, [EnvironmentId.parse(resident.environment) for resident in stay])
            found += self._leftover("package", map(Path, unused), "no environment uses this package in Spack's store")
            caches = self.store.root.glob("cache/installers/*")
            found += self._leftover("cache", caches, "pip and uv unpack packages there")
        return found

    def _of_builds(self, stay: Iterable[Resident]) -> list[Leftover]:
        """The folders of compilations of what is finished or gone, and logs of what is gone."""
        found, layout = [], self.store.layout
        there = {
            str(layout.build(EnvironmentId.parse(one.environment)).relative_to(layout.root / "build")): one
            for one in stay
        }
        for kind in ("build", "log"):
            top = Path(layout.root) / {"build": "build", "log": "logs"}[kind]
            for path in top.glob("*/[!.]*"):
                resident = there.get(str(path.relative_to(top)))
                if resident is None:
                    found += self._leftover(kind, [path], "of an environment that is gone")
                elif kind == "build" and resident.finished and not (resident.holder or resident.newer):
                    found += self._leftover(kind, [path], "of an environment that is finished")
        return found

    def _old_generations(self, keep: int) -> list[Leftover]:
        found, generations = [], self.store.generations
        for arch in generations.archs():
            current = generations.current(arch)
            old = [number for number in generations.numbers(arch) if number != current]
            for number in old[: max(0, len(old) - keep)]:
                folder = generations.folder(arch, number)
                if self._look_back(folder)[1] is None:
                    found += self._leftover(
                        "generation", [folder], f"generation {number} of arch {arch}; the newest {keep} stay"
                    )
        return found

    def _leftover(self, kind: str, paths: Iterable[Path], why: str) -> list[Leftover]:
        found = []
        for path in sorted(paths):
            size, files = size_below(path)
            with contextlib.suppress(OSError):
                age_s = max(0.0, time.time() - path.lstat().st_mtime)
                found.append(Leftover(kind=kind, path=str(path), size=size, files=files, age_s=age_s, why=why))  # type: ignore[arg-type]
        return found

    # Removing

    def remove(self, env: EnvironmentId) -> str | None:
        """Remove an environment, unless it was published, pinned or locked meanwhile; returns why it was not removed.

        Raises:
            StoreError: it cannot be removed.
        """
        try:
            with (
                self.store.held(Path(self.store.layout.lock(env)), {"does": f"removes {env}"}, wait=False),
                self.store.generations.held(env.arch, f"removes {env}"),
            ):
                (now,) = self.residents([env])
                if now.module or now.newer or now.pinned is not None or now.used_by:
                    return now.protection[0] if now.protection else None
                trash = self.store.set_aside(str(self.store.layout.prefix(env)))
        except StoreError as error:
            if error.kind != "locked":
                raise
            return error.message
        self.store.delete(trash)
        layout = self.store.layout
        for path in (layout.build(env), layout.log(env, "x").parent, layout.pin(env)):
            self.store.remove(str(path))
        return None

    def carry_out(
        self, decisions: Sequence[RemovalDecision], leftovers: Sequence[Leftover]
    ) -> tuple[list[Resident | Leftover], list[str]]:
        """Remove what was decided; returns what is gone, and a line for each thing that stays after all.

        Raises:
            StoreError: something cannot be removed; what was removed before stays removed.
        """
        self.store.shared.refuse_strangers()
        stays: dict[str, str | None] = {}
        residents = [decision.resident for decision in decisions if decision.removes]
        for one in residents:
            why = self.remove(EnvironmentId.parse(one.environment))
            stays[one.environment] = why or (removed_for(one) if one.foreign else None)
        stays |= self._uninstall([leftover.path for leftover in leftovers if leftover.kind == "package"])
        for leftover in leftovers:
            if leftover.kind != "package":
                stays[leftover.path] = self._remove_leftover(leftover)
        gone: list[Resident | Leftover] = [
            *(one for one in residents if stays[one.environment] is None),
            *(leftover for leftover in leftovers if stays[leftover.path] is None),
        ]
        return gone, [f"{name}: {why}" for name, why in stays.items() if why]

    def _remove_leftover(self, leftover: Leftover) -> str | None:
        """Remove what no environment needs; returns why it stays after all."""
        path, modules, generations = Path(leftover.path), self.store.root / "modules", self.store.generations
        arch = path.name[1:].rsplit(".", 2)[0] if path.parent == modules else path.parent.name
        try:
            if leftover.kind == "lock":
                with self.store.held(path, {"does": "removes it"}, Waiting(says=lambda _: None)):
                    return None  # the lock is free now, for the next process that waits
            # A run that publishes has such files too.
            locked = generations.held(arch, "changes what users load") if modules in path.parents else None
            with locked or contextlib.nullcontext():
                if leftover.kind == "generation" and generations.current(arch) == int(path.name):
                    return "users load it"
                self.store.remove(str(path))
        except StoreError as error:
            return error.message
        return f"`{user_name(path.lstat().st_uid)}` owns it" if os.path.lexists(path) else None

    def _uninstall(self, packages: Sequence[str]) -> dict[str, str | None]:
        """Let Spack remove the packages in these folders that still no environment uses; returns why one stays after all."""
        if not packages:
            return {}
        unused = unused_packages(self.store, self.store.environments())
        stays = uninstall(self.store, [path for path in packages if path in unused])
        return {path: stays.get(path) if path in unused else "an environment uses it now" for path in packages}


def removed_for(resident: Resident) -> str:
    """What stays of an environment of another admin that was removed, as a phrase."""
    return f"it is gone for users; `provision prune` of `{resident.foreign}` or root frees its space"


def size_below(path: Path) -> tuple[int, int]:
    """The bytes and the number of files at a path, and below it."""
    size, files, waiting = 0, 0, [path]
    while waiting:
        place = waiting.pop()
        with contextlib.suppress(OSError):
            if place.is_dir() and not place.is_symlink():
                waiting += place.iterdir()
            else:
                size, files = size + place.lstat().st_size, files + 1
    return size, files
