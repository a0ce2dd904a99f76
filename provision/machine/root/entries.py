"""Reads what a site has built: every environment with its state, record, proofs and size."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from datetime import datetime, timezone
from pathlib import Path

from provision.machine.files.disk import names_in
from provision.machine.root.checking import glance
from provision.machine.root.store import Store
from provision.machine.root.usable import modulefiles
from provision.machine.sharing.claims import describe_holder
from provision.machine.sharing.locks import holder
from provision.model.generation import Generation
from provision.model.layout import EnvironmentId
from provision.model.verdict import ProofResult
from provision.planning.overview import Entry


def read_overview(store: Store) -> tuple[Entry, ...]:
    """Every environment below the root, in the order of their names. What is damaged is left out of its entry."""
    pointers = {env: name for name, env in store.pointers().items()}
    now = {arch: store.generations.look(store.generations.pointer(arch))[0] for arch in store.generations.archs()}
    entries = []
    for env in store.environments():
        loaded = str(env) in pointers
        seen = glance(store, env, loaded=loaded)
        record, why, state = seen.record, seen.why, "newer" if seen.newer else "published" if loaded else "proved"
        if why:
            state = "broken"
        elif not seen.finished:
            why = building(store, env)
            state = "building" if why else "unfinished"
        entries.append(
            Entry(
                environment=env,
                state=state,
                why=why,
                module=pointers.get(str(env), "").split("/", 1)[-1] or None,
                record=record,
                proofs=read_proofs(store, env, record.verdict if record else None),
                age_s=age_of(record.built) if record else None,
                size_bytes=seen.head.size if seen.head else None,
                marks=marks_of(store, env, now.get(env.arch, Generation())),
            )
        )
    return tuple(entries)


def marks_of(store: Store, env: EnvironmentId, now: Generation) -> dict[str, str]:
    """The marks of an environment: those of its module, if users of its arch load it `now`, and of its pin."""
    module, pin = f"{env.name}/{env.version}", store.pin(env)
    shown = now.marks(module) if now.modules.get(module) == str(env) else {}
    return {**shown, **({} if pin is None else {"pinned": pin})}


def lost_modules(store: Store, entries: Iterable[Entry]) -> list[str]:
    """The modules and pointers that do not lead to a published environment that is whole, as far as these entries show it."""
    generations = store.generations
    good = {str(entry.environment) for entry in entries if entry.state in ("published", "newer")}
    pointers, lost = store.pointers(), []
    for arch in generations.archs():
        pointer = generations.pointer(arch)
        if os.path.lexists(pointer) and not pointer.is_dir():
            lost.append(str(pointer))
        else:
            lost += [f"{arch}/{name}" for name in sorted(modulefiles(pointer)) if f"{arch}/{name}" not in pointers]
    return [*lost, *(name for name, environment in pointers.items() if environment not in good)]


def building(store: Store, env: EnvironmentId) -> str | None:
    """Who builds an environment now, and since when, as a phrase; None if nobody does."""
    builder = holder(Path(store.layout.lock(env)))
    return f"being built by {describe_holder(builder)}" if builder else None


def read_proofs(store: Store, env: EnvironmentId, built: ProofResult | None = None) -> tuple[ProofResult, ...]:
    """The proofs of an environment by time: that of its build (`built`, if its record was read), then those of `test`."""
    records = str(store.layout.records_folder(env))
    proofs = [built] if built else []
    tests = [f"{records}/tests/{name}/verdict.json" for name in names_in(f"{records}/tests")]
    for path in (*([] if built else [f"{records}/verdict.json"]), *tests):
        with contextlib.suppress(ValueError):
            data = store.shared.read_json(path)
            if data is not None:
                proofs.append(ProofResult.from_dict(data))
    return tuple(proofs)


def age_of(built: str) -> float | None:
    """The seconds since a time of a record (ISO 8601 with the offset from UTC); None if it is not such a time."""
    try:
        return (datetime.now(timezone.utc) - datetime.fromisoformat(built)).total_seconds()
    except (TypeError, ValueError):
        return None
