"""`provision pack ENV`: make one image of an environment that passed its proof, for jobs of many nodes."""

from __future__ import annotations

from pathlib import Path

from provision.commands.shared.environments import arch_of, named_environment
from provision.commands.shared.outcome import Args, Outcome
from provision.errors import ConfigError, PlanError
from provision.machine.install.packing import pack
from provision.machine.programs.shell import environ
from provision.machine.root.completing import hint_to_complete
from provision.machine.root.image_only import described_images
from provision.machine.terminal.console import say
from provision.model.operation import Pack


def run(args: Args) -> Outcome:
    """Pack it, or pack it again."""
    site, store, env = named_environment(args)
    with store.held(Path(store.layout.lock(env)), {"does": f"packs {env}"}, wait=False):
        record = store.record(env)
        if record is not None and record.identity.get("backend") == "spack":
            raise ConfigError(
                f"`{env}` cannot be packed: its files are links into Spack's store",
                hint="`provision build --backend venv` builds one that can be packed",
            )
        if record is None:
            raise PlanError(
                f"`{env}` has not passed its proof", hint=hint_to_complete(store, env, site), kind="unproved"
            )
        log = Path(store.layout.log(env, "pack"))
        store.shared.make(log.parent)
        only = bool(described_images(store, env).get("only"))
        operation = Pack(mount_with=arch_of(site, env).deliver_with, only=only)
        result = pack(store, env, operation, environ(), log, say)
    return Outcome(
        text=f"packed {env}: jobs use it with `provision job KIND --deliver image`",
        result={"environment": str(env), **result},
    )
