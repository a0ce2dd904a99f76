"""The command that completes an environment which has not passed its proof, for hints."""

from __future__ import annotations

import contextlib
from pathlib import Path

from provision.errors import StoreError
from provision.machine.root.sealing import read_description
from provision.machine.root.store import Store
from provision.model.estimate import backend_of
from provision.model.layout import EnvironmentId
from provision.model.quoting import bash
from provision.profile.stack import BACKENDS


def command_to_complete(store: Store, env: EnvironmentId, site: str | None = None) -> str:
    """The build that continues this environment: its site, arch, stack and backend. `site` is a word of a command line.

    Its stack is known after the first step; before that, and if its records are damaged, the user fills it in.
    """
    stack, backend = "STACK", BACKENDS[0]
    with contextlib.suppress(StoreError):
        description = read_description(store, env)
        stack, site = bash("%s", description.stack), site or bash("%s", description.site)
    with contextlib.suppress(StoreError):
        backend = backend_of(store.shared.read_json(Path(store.layout.records_folder(env)) / "plan.json"))
    words = (
        "provision build",
        *((f"--site {site}",) if site else ()),
        f"--arch {bash('%s', env.arch)}",
        f"--stack {stack}",
        *((f"--backend {backend}",) if backend != BACKENDS[0] else ()),
    )
    return " ".join(words)
