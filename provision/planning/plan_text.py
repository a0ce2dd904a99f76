"""A plan as text: the environment, a line for each step, and the total. It fits on a screen of 80 by 24. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from provision.model.operation import (
    Command,
    FetchSource,
    Inspect,
    InstallWheel,
    Operation,
    Together,
    Unpack,
)
from provision.model.plan import Action, Plan, Step
from provision.model.record import expected_total
from provision.wording import about, count

SHOWN = ("target", "modules", "python", "compiler", "mpi", "gpu", "cuda", "nccl")
"""What decides the environment and is worth a line."""
INDENT = " " * 15
# Behind the title of a step that need not run.
NOTES: Mapping[Action, str] = {"create": "", "keep": "  (kept)", "reuse": "  (from the cache)"}


def plan_lines(
    plan: Plan,
    *,
    expected: Mapping[str, float],
    verbose: bool = False,
    commands: bool = False,
    replaced: str | None = None,
) -> list[str]:
    """The plan as lines.

    `expected`: the seconds that steps took before (`expected_seconds`). `replaced`: what differs from what users load
    now. `verbose` adds patches and the reason of each step, `commands` what each step runs.
    """
    replaces = "" if replaced else f" (replaces {plan.replaces.rpartition('/')[2]})" if plan.replaces else ""
    lines = [
        f"environment  {plan.environment}",
        f"prefix       {plan.prefix}",
        f"module       {plan.modulefile.name}/{plan.modulefile.version}{replaces}",
        *([f"replaces     {replaced}"] if replaced else []),
        *([f"rebuild      the build before it is broken: {plan.broken}"] if plan.broken else []),
        *(f"{name:<12} {plan.identity[name]}" for name in SHOWN if plan.identity.get(name)),
        "",
    ]
    width = max(10, *(len(step.name) for step in plan.steps))
    for number, step in enumerate(plan.steps, 1):
        lines.append(f"{number:>3} {step.name:<{width}} {step.title}{NOTES[step.action]}")
        lines += [f"{INDENT}{line}" for line in _details(step, verbose=verbose, commands=commands)]
    return [*lines, *plan.notes, sum_of(plan, expected)]


def sum_of(plan: Plan, expected: Mapping[str, float]) -> str:
    """How much there is to do: steps, whether it compiles, and how long that took before."""
    if plan.done:
        return "nothing to do: built, proved and published"
    names = [step.name for step in plan.steps if step.action == "create"]
    total = len(plan.steps)
    words = [count(total, "step") if len(names) == total else f"{len(names)} of {total} steps to do"]
    words += ["1 to compile"] if "compile" in names else []
    seconds = expected_total(names, expected)
    return ", ".join([*words, *([about(seconds)] if seconds else [])])


def _details(step: Step, *, verbose: bool, commands: bool) -> list[str]:
    patches = [patch for operation in step.operations if isinstance(operation, Unpack) for patch in operation.patches]
    in_short = [f"{count(len(patches), 'patch', 'patches')}; --verbose lists them"] if patches else []
    return [
        *([f"why: {step.reason}"] if verbose else []),
        *([f"patch {patch.name}: {patch.subject}" for patch in patches] if verbose else in_short),
        *(line for operation in (step.operations if commands else ()) for line in _commands(operation)),
    ]


def _commands(operation: Operation) -> list[str]:
    """What an operation runs, as a shell would have it; an operation without a program as a comment."""
    match operation:
        case Together():
            return [line for _, command in operation.commands for line in _commands(command)]
        case Command():
            command = operation
        case FetchSource():
            command = operation.download
        case Inspect() | InstallWheel():
            command = operation.command
        case _:
            return [f"# {type(operation).__name__} {getattr(operation, 'path', '')}".rstrip()]
    variables = [f"{name}={shlex.quote(value)}" for name, value in command.environ]
    return [f"$ {' '.join((*variables, shlex.join(command.argv)))}"]
