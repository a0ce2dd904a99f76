"""What is below a root already, for the planner."""

from __future__ import annotations

import contextlib
import os

from provision.machine.root.checking import glance
from provision.machine.root.store import Store
from provision.model.facts import Existing
from provision.model.layout import EnvironmentId


def existing(store: Store, module: str | None = None) -> Existing:
    """Everything below the root that the planner needs to know; of environments only those of this module, if one is given.

    A finished environment is used as it is, or is broken. One that another admin began has no receipts: its prefix can be written
    by that admin alone, so another one starts over.
    """
    receipts, broken, pointers = {}, {}, store.pointers()
    envs = {str(env): env for env in store.environments(module)}
    loaded = {environment for name, environment in pointers.items() if module in (None, name.partition("/")[2])}
    for name in loaded - envs.keys():  # it is gone; what is unfinished must not be where users load it
        with contextlib.suppress(ValueError):
            envs[name] = EnvironmentId.parse(name)
    for name, env in envs.items():
        seen = glance(store, env, loaded=name in loaded)
        if seen.why:
            broken[name] = seen.why
        if seen.finished:
            receipts[name] = frozenset({"publish"})
        elif os.access(store.layout.records_folder(env), os.W_OK):
            receipts[name] = store.receipts(env)
    wheels = [path.parent for path in (store.root / "wheels").glob("[!.]*/wheel.json")]
    return Existing(
        receipts=receipts,
        wheels=frozenset(path.name for path in wheels if store.wheels.has(path.name)),
        pointers=pointers,
        fetched=store.downloads.fetched(),
        sources=store.downloads.sources(),
        broken=broken,
    )
