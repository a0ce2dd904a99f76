"""`provision pin ENV`: keep an environment from being removed."""

from __future__ import annotations

from provision.commands.shared.environments import named_environment
from provision.commands.shared.outcome import Args, Outcome
from provision.commands.shared.typos import refuse_text
from provision.machine.root.removing import Remover


def run(args: Args) -> Outcome:
    """Write or remove the pin."""
    refuse_text("--reason", args.reason)
    _, store, env = named_environment(args)
    reason = None if args.off else args.reason
    Remover(store).set_pin(env, reason)
    text = f"{env} can be removed again" if reason is None else f"{env} is kept: {reason}"
    return Outcome(text=text, result={"environment": str(env), "pinned": reason})
