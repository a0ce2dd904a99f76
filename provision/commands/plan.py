"""`provision plan`: every step, why, and what it would reuse. Touches nothing."""

from __future__ import annotations

import argparse
import shlex

from provision.commands import Outcome, add_target, read_target


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to plan, and how much to show."""
    add_target(parser)
    parser.add_argument("--commands", action="store_true", help="show the commands of every step too")


def run(args: argparse.Namespace) -> Outcome:
    """Plan and show."""
    from provision.model.plan import Plan
    from provision.planner import make_plan
    from provision.preflight import blockers, network_problems

    target = read_target(args)
    facts = target.observe()
    request = target.request(facts)
    plan: Plan = make_plan(request, facts, target.store.existing())
    notes = (*blockers(request, facts), *network_problems(request, plan))
    lines = plan_lines(plan, commands=args.commands)
    for problem in notes:
        lines += [f"not here: {problem.message}", *(f"  {line}" for line in problem.evidence)]
        lines += [f"  hint: {problem.hint}"] if problem.hint else []
    result = {**plan.to_dict(), "not_here": [problem.message for problem in notes]}
    return Outcome(text="\n".join(lines), result=result)


def plan_lines(plan: object, *, commands: bool) -> list[str]:
    """A plan as people read it."""
    from provision.model.plan import Command, FetchSource, Inspect, Plan, Unpack

    assert isinstance(plan, Plan)
    lines = [
        f"environment  {plan.environment}",
        f"prefix       {plan.prefix}",
        f"module       {plan.modulefile.name}/{plan.modulefile.version}",
        *(
            f"{name:<12} {plan.identity[name]}"
            for name in ("target", "modules", "python", "compiler", "mpi", "gpu", "cuda", "nccl")
            if plan.identity.get(name)
        ),
        "",
    ]
    for step in plan.steps:
        lines.append(f"{step.action:<7} {step.name:<10} {step.title}  ({step.reason})")
        for operation in step.operations:
            if isinstance(operation, Unpack):
                lines += [f"          patch {patch.name}: {patch.subject}" for patch in operation.patches]
            if not commands:
                continue
            match operation:
                case Command():
                    command = operation
                case FetchSource():
                    command = operation.download
                case Inspect():
                    command = operation.command
                case _:
                    lines.append(f"          # {type(operation).__name__} {getattr(operation, 'path', '')}".rstrip())
                    continue
            variables = [f"{name}={shlex.quote(value)}" for name, value in command.environ]
            lines.append(f"          $ {' '.join((*variables, shlex.join(command.argv)))}")
    if plan.done:
        lines.append("\nnothing to do: built, proved and published")
    return lines
