"""Plans of a few small steps, and what carries them out below a root of the test."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from parts.profiles import profile
from provision.machine.install.executor import Executor
from provision.machine.root.store import Store
from provision.machine.sharing.locks import HeldLock
from provision.model.event import Event
from provision.model.layout import EnvironmentId
from provision.model.operation import Command
from provision.model.plan import Modulefile, Plan, Step


def sh(script: str, **more: Any) -> Command:
    """A command that runs a script of the shell."""
    return Command(argv=("/bin/sh", "-euc", script), **more)


def make_module(env: EnvironmentId, prefix: str, **changes: Any) -> Modulefile:
    """A modulefile that does nothing, with these values in place of its own."""
    empty: dict[str, Any] = dict.fromkeys(("modules", "prepend", "environ", "facts"), ())
    values = {"name": env.name, "version": env.version, "summary": "TensorFlow", "environment": str(env), **empty}
    return Modulefile(**{**values, "prefix": prefix, **changes})


def plan_of(store: Store, env: EnvironmentId, steps: Sequence[Step], **changes: Any) -> Plan:
    """The plan of these steps for an environment below this root, with these values in place of its own."""
    prefix = str(store.layout.prefix(env))
    values: dict[str, Any] = {"identity": {}, "abi_key": None, "modulefile": make_module(env, prefix), **changes}
    return Plan(
        site="local",
        stack="tensorflow-2.15.1",
        environment=env,
        prefix=prefix,
        not_fetched=(),
        steps=tuple(steps),
        **values,
    )


def executor_of(
    store: Store,
    plan: Plan,
    lock: HeldLock,
    listen: Callable[[Event], None] = lambda event: None,
    environ: Mapping[str, str] | None = None,
) -> Executor:
    """What carries a plan out."""
    values = {"PATH": os.defpath, **(environ or {})}
    return Executor(plan=plan, site=profile("local"), store=store, environ=values, listen=listen, lock=lock)


def carry_out(store: Store, plan: Plan, listen: Callable[[Event], None] = lambda event: None) -> None:
    """Carry a plan out under the lock of its environment."""
    with store.held(Path(store.layout.lock(plan.environment)), {}) as lock:
        executor_of(store, plan, lock, listen).run()
