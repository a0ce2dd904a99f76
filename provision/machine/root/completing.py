"""The command that completes an environment which has not passed its proof, for hints."""

from __future__ import annotations

import contextlib
from pathlib import Path

from provision.errors import StoreError
from provision.machine.probes.probe import cpu
from provision.machine.root.sealing import read_description
from provision.machine.root.store import Store
from provision.model.estimate import backend_of
from provision.model.layout import EnvironmentId
from provision.model.quoting import bash
from provision.profile.site import Site
from provision.profile.stack import BACKENDS


def command_to_complete(store: Store, env: EnvironmentId, site: Site) -> str:
    """The build that continues this environment: its site, its arch in the profile, its stack and its backend.

    The stack is known after the first step; before that, and if its records are damaged, the user fills it in.
    """
    stack, backend = "STACK", BACKENDS[0]
    with contextlib.suppress(StoreError):
        stack = str(bash("%s", read_description(store, env).stack))
    with contextlib.suppress(StoreError):
        backend = backend_of(store.shared.read_json(Path(store.layout.records_folder(env)) / "plan.json"))
    arch = site.arch_built_as(env.arch)
    words = (
        f"provision build --site {site.typed}",
        *((f"--arch {arch.name}",) if arch else ()),
        f"--stack {stack}",
        *((f"--backend {backend}",) if backend != BACKENDS[0] else ()),
    )
    return " ".join(words)


def hint_to_complete(store: Store, env: EnvironmentId, site: Site) -> str:
    """The hint with that command; an arch `native` builds for the CPU of the machine, so it may be for another one."""
    arch, where = site.arch_built_as(env.arch), ""
    if arch is not None and arch.target == "native" and cpu().target != env.arch:
        where = f" on a machine with the CPU `{env.arch}`"
    return f"`{command_to_complete(store, env, site)}`{where} completes it"
