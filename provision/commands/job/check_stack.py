"""Whether the stack of a user's job can run it, and the stacks that can."""

from __future__ import annotations

from provision.commands.shared.offer import judge_profile
from provision.commands.shared.target import Target
from provision.errors import ConfigError
from provision.knowledge.versions import release
from provision.machine.configuration import shipped
from provision.profile.strategy import StrategyName

# What the programs of a kind of job import: the distribution, and its name for people.
IMPORTS: dict[StrategyName, tuple[str, str]] = {"horovod": ("horovod", "Horovod"), "mpi": ("mpi4py", "mpi4py")}


def stacks_for(kind: StrategyName, target: Target) -> list[str]:
    """The stacks that can run this kind of job on the arch, from the profile alone: the profile's own and the nearest first."""
    needs, own = IMPORTS.get(kind, (None, ""))[0], target.stack.framework
    stacks = [
        one
        for one in shipped.stacks_with_versions()
        if kind in one.framework.interface.kinds
        and needs in (None, *one.from_source)
        and not judge_profile(target.site, target.arch, one)[0]
    ]
    stacks.sort(key=lambda one: release(one.framework.version), reverse=True)
    stacks.sort(
        key=lambda one: (
            one.name != target.site.strategy(kind).stack,
            one.framework.name != own.name,
            one.framework.version != own.version,
            one.proof_program != kind,
        )
    )
    return [one.name for one in stacks]


def check_packages(kind: StrategyName, target: Target) -> None:
    """Refuse a stack without the package that the programs of this kind import.

    Raises:
        ConfigError: it has none; the hint names a stack that has it, or another kind for this stack.
    """
    stack, (needs, title) = target.stack, IMPORTS.get(kind, ("", ""))
    if not needs or needs in stack.from_source:
        return
    fits = stacks_for(kind, target)
    if kind == "horovod":  # the program is written for one framework
        fits = [name for name in fits if shipped.load_stack(name).framework.name == stack.framework.name]
    trains = next((one for one in ("ddp", "multiworker") if one in stack.framework.interface.kinds), "single")
    words = f"--site {target.site.typed} --arch {target.arch.name} --stack"
    raise ConfigError(
        f"the stack `{stack.name}` has no {title}, which every program of `job {kind}` imports",
        evidence=[f"stacks with {title} for arch `{target.arch.name}`: {', '.join(fits) or 'none'}"],
        hint=f"`provision job {kind} {words} {fits[0]}`" if fits else f"`provision job {trains} {words} {stack.name}`",
    )


def check_judgement(kind: StrategyName, target: Target) -> None:
    """Raise a `ConfigError` for a stack that cannot be built on the arch, as `plan --profile` says."""
    against = judge_profile(target.site, target.arch, target.stack)[0]
    if not against:
        return
    fits = stacks_for(kind, target)
    compat = f"`provision compat --site {target.site.typed} --arch {target.arch.name}` shows which stacks work"
    raise ConfigError(
        f"the stack `{target.stack.name}` cannot work on arch `{target.arch.name}`",
        evidence=[f"{target.stack.name} {line}" for line in against],
        hint=f"`--stack {fits[0]}`; {compat}" if fits else compat,
    )
