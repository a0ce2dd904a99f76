"""What is below a root already, for the planner."""

from __future__ import annotations

import os
from pathlib import Path

from provision.machine.root.store import Store
from provision.machine.root.usable import glance
from provision.model.facts import Existing


def existing(store: Store, module: str | None = None) -> Existing:
    """Everything below the root that the planner needs to know; of environments only those of this module, if one is given.

    An unfinished environment that another admin began has no receipts: its prefix can be written by that admin alone,
    so another one starts over. A finished one is used as it is.
    """
    receipts, broken = {}, {}
    for env in store.environments(module):
        folder = Path(store.layout.records_folder(env))
        if os.access(folder, os.W_OK) or (folder / "record.json").exists():
            receipts[str(env)] = store.receipts(env)
            why = glance(store, env, store.record(env)) if "publish" in receipts[str(env)] else None
            if why:
                broken[str(env)] = why
    wheels = [path.parent for path in (store.root / "wheels").glob("[!.]*/wheel.json")]
    return Existing(
        receipts=receipts,
        wheels=frozenset(path.name for path in wheels if store.wheels.has(path.name)),
        pointers=store.pointers(),
        fetched=store.downloads.fetched(),
        sources=store.downloads.sources(),
        broken=broken,
    )
