"""How a rule is written: a function with its name and a decorator, which is its weight, and has its message and its fix.

The parameters of the function are what the rule looks at; it runs if all of them are there. `job`: a job script. `program`: its
training script, and `script` the syntax tree of that. `site`: the profile of the site, if its scheduler is that of the job.
`archs`: those that the job may be for. `arch`: one of them, if the profile describes the nodes of the job; a fault is reported
if the job has it at each of these archs.
`foreign`: the profile of the site, if it has another scheduler. May be None: `profile` (that of the site in both cases), `named`
(the arch that the user named), `training` (the training script), `start` (the command that starts it), `job_script` (the job),
`cluster` (what the scheduler of this machine says, if it is that of the site).

The function yields the place of each fault, then the values for `{0}`, `{1}` in its message and its fix. A place is a line of the
job script, or a node or line number of the training script; `Shown` has another text than that line as evidence. The docstring is
what the rule finds: `docs/reference/lint-rules.md` is written from it. If a rule has several functions, it is that of the first,
and the others have the name of the rule in their decorator.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, TypeVar

from provision.lint import WEIGHTS, Finding, Weight
from provision.lint.shell_lines import ShellLine

Found = Iterator[tuple[Any, ...]]
"""What the function of a rule yields: a place, then values for its message and its fix."""
Check = TypeVar("Check", bound=Callable[..., Iterable[tuple[Any, ...]]])
MAY_BE_NONE = ("profile", "named", "training", "start", "job_script", "cluster")
MOST_SHOWN = 300
"""The most characters of a line that are shown as evidence."""


class Shown(NamedTuple):
    """A place in a training script, and the text that shows the fault."""

    place: ast.expr | ast.stmt | int
    text: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A function of a rule, with what its decorator gives."""

    name: str
    weight: Weight
    message: str
    fix: str
    finds: str
    check: Callable[..., Iterable[tuple[Any, ...]]]
    needs: tuple[str, ...]

    @property
    def subject(self) -> str:
        """What it looks at: `job and site`."""
        needs = {{"foreign": "site", "script": "program"}.get(need, need) for need in self.needs}
        return " and ".join(word for word in ("job", "program", "site") if word in needs)


RULES: dict[str, Rule] = {}
"""The first function of each rule."""
FUNCTIONS: list[Rule] = []


def _rule(weight: Weight, message: str, fix: str, *, name: str = "", finds: str = "") -> Callable[[Check], Check]:
    def register(check: Check) -> Check:
        title = name or check.__name__.replace("_", "-")
        text = finds or (check.__doc__ or "").partition("\n")[0].removesuffix(".")
        needs = check.__code__.co_varnames[: check.__code__.co_argcount]
        rule = Rule(name=title, weight=weight, message=message, fix=fix, finds=text, check=check, needs=needs)
        FUNCTIONS.append(rule)
        RULES.setdefault(title, rule)
        return check

    return register


error, warning, advice = (partial(_rule, weight) for weight in WEIGHTS)


def find(
    given: Mapping[str, Any], subject: Literal["job", "program"], archs: Sequence[object] = ()
) -> Iterator[Finding]:
    """What the rules about a job script, or those about a training script alone, find in what is given.

    `archs` are those whose nodes are those of the job.
    """
    training = given["program"]
    given = {**given, "script": None if training is None else training.script}
    for rule in FUNCTIONS:
        if ("job" in rule.needs) is not (subject == "job"):
            continue
        if "arch" in rule.needs:
            each = [list(_found(rule, {**given, "arch": arch})) for arch in archs]
            if all(each):
                yield from each[0] if each else ()
        else:
            yield from _found(rule, given)


def _found(rule: Rule, given: Mapping[str, Any]) -> Iterator[Finding]:
    values = [given[need] for need in rule.needs]
    if any(value is None and need not in MAY_BE_NONE for need, value in zip(rule.needs, values, strict=True)):
        return
    for place, *said in rule.check(*values):
        line, text = place if isinstance(place, Shown) else (place, None)
        if isinstance(line, ShellLine):
            file, number, shown = given["job"].name, line.number, line.text
        else:
            training = given["program"]
            file, number = training.file, line if isinstance(line, int) else line.lineno
            shown = training.row(number) if text is None else str(text)
        yield Finding(
            weight=rule.weight,
            rule=rule.name,
            file=file,
            line=number,
            message=rule.message.format(*said),
            evidence=(shown if len(shown) <= MOST_SHOWN else f"{shown[:MOST_SHOWN]}…").replace("\n", " "),
            fix=rule.fix.format(*said),
        )
