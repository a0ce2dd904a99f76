"""`eval "$(provision activate ENV)"`: the effect of the modulefile on a site without a module system.

The code for sh is in the environment; that for other shells is made of the same description.
"""

from __future__ import annotations

from provision.commands.shared.environments import named_environment
from provision.commands.shared.outcome import Args, Outcome
from provision.errors import PlanError
from provision.machine.rendering.render_modulefile import emit_modulefile
from provision.machine.root.completing import hint_to_complete
from provision.machine.root.sealing import read_description


def run(args: Args) -> Outcome:
    """Print shell code; `provision_deactivate` undoes it."""
    site, store, env = named_environment(args)
    record = store.record(env)
    if record is None:
        raise PlanError(
            f"`{env}` has not passed its proof, so it cannot be activated",
            hint=hint_to_complete(store, env, site),
        )
    if record.modules:
        folder = f"{store.layout.modules(env.arch)}/{site.modules.module_kind}"
        raise PlanError(
            f"`{env}` needs the modules {' '.join(record.modules)}, which only a module system loads",
            hint=f"`{site.modules.load_command(folder, record.module)}`",
        )
    text = (
        store.activation(env)
        if args.shell == "sh"
        else emit_modulefile(read_description(store, env).modulefile, args.shell, record.proof)
    )
    return Outcome(text=text, result={"environment": str(env), "script": text})
