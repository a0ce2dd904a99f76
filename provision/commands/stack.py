"""`provision stack list`: list the stacks: what a build can install."""

from __future__ import annotations

from typing import Any

from provision.commands.shared.outcome import Args, Outcome
from provision.errors import ConfigError
from provision.knowledge.frameworks import FRAMEWORKS
from provision.knowledge.versions import ascending
from provision.machine.configuration import shipped
from provision.machine.configuration.search_path import known
from provision.planning.solver import newest_first
from provision.profile.stack import Stack, Wish


def run_list(args: Args) -> Outcome:
    """List the stacks."""
    stacks, wishes, wrong = list[Stack](), list[Wish](), []
    for name in known("stacks"):
        try:
            if wish := shipped.load_wish(name):
                wishes.append(wish)
            else:
                stacks.append(shipped.load_stack(name))
        except ConfigError as error:
            wrong.append(f"{name}: {error.message}")
    rows = [
        {
            "name": stack.name,
            "summary": stack.summary,
            "module": stack.module,
            "pythons": list(stack.pythons),
            "framework": str(stack.framework.version),
            "horovod": stack.horovod,
        }
        for stack in newest_first(stacks)
    ]
    width = max((len(stack.name) for stack in stacks), default=0)
    lines = [line for row in rows for line in stack_lines(row, width)]
    for wish in wishes:
        framework, versions = wish.framework
        lines.append(f"{wish.name:<{width}}  chooses the newest {FRAMEWORKS[framework].title} {versions} that works")
    lines.append("`provision compat --arch ARCH` shows which of them work on a kind of node, and recommends one")
    ranges = [{"name": wish.name, "summary": wish.summary, **dict([wish.framework])} for wish in wishes]
    return Outcome(text="\n".join([*lines, *wrong]), result={"stacks": rows, "ranges": ranges, "unreadable": wrong})


def stack_lines(row: dict[str, Any], width: int) -> list[str]:
    """A stack on one line, its summary below it."""
    horovod = f"Horovod {row['horovod']}" if row["horovod"] else "no Horovod"
    first, *others = row["pythons"]
    pythons = [f"{minor} (preferred)" if minor == first and others else minor for minor in ascending(row["pythons"])]
    lines = [f"{row['name']:<{width}}  Python {', '.join(pythons)}; {horovod}"]
    return [*lines, f"{'':<{width}}  {row['summary']}"] if row["summary"] else lines
