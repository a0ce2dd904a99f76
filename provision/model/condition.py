"""The condition of an environment: what differs from what passed the proof, and the verdict. Pure.

A trace is one thing of the machine that an environment depends on, with its value when the environment was proved.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

from provision.model.check import MARKS, Check, observed
from provision.model.stored import Stored
from provision.wording import count

Condition = Literal["fresh", "drifted", "broken"]
SHOWN, MOST = 3, 200
"""How many files of a group are shown, and how many differences JSON has."""
TraceKind = Literal["system", "python", "module", "folder", "library"]
AGAIN = "`provision test --all` proves again what users load; `provision build --rebuild` builds it again"
GONE: Mapping[TraceKind, str] = {
    "system": "it is not on this machine any more",
    "python": "the Python that it was made with is gone",
    "module": "the modulefile is gone",
    "folder": "the folder, which a module of the build names, is gone",
    "library": "a library that it loads is gone",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace(Stored):
    """One value of the machine. A subject is a path, but for `system`: `glibc`, `operating system`, `GPU driver`."""

    kind: TraceKind
    subject: str
    value: str


def judge_traces(
    traces: Sequence[Trace], measure: Callable[[TraceKind, str], str | None], *, same_node: bool
) -> tuple[list[Check], list[str]]:
    """What drifted: each trace measured again. Also what was not compared, as notes.

    `same_node`: whether this is a node of the kind that proved the environment: a login node may have another system.
    """
    differences, skipped = [], False
    for trace in traces:
        if not same_node and trace.kind in ("system", "library"):
            skipped = True
            continue
        now = measure(trace.kind, trace.subject)
        if now == trace.value:
            continue
        name = f"module {trace.subject}" if trace.kind == "module" else trace.subject
        breaks = now is None and trace.kind in ("python", "library", "module")
        what = GONE[trace.kind] if now is None else _changed(trace, now)
        differences.append(observed("", "bad" if breaks else "note", what, name=name, hint=AGAIN))
    note = "a job proved it, and this is not one: the system and its libraries were not compared; verify in a job"
    return differences, [note] if skipped else []


def _changed(trace: Trace, now: str) -> str:
    """How a value changed, in words."""
    if trace.kind == "module":
        return "the modulefile changed"
    if trace.kind == "folder":
        return f"it led to {trace.value} and leads to {now}"
    if trace.kind == "system":
        return f"it was {trace.value} and is {now}"
    before, after = trace.value.rpartition(" ")[0], now.rpartition(" ")[0]
    return f"it led to {before} and leads to {after}" if before != after else "its content changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination(Stored):
    """What a look at one environment found."""

    SCHEMA: ClassVar[int] = 1
    environment: str
    differences: tuple[Check, ...] = ()
    """The name of each is a path, or what of the machine differs (`glibc`, `module gcc/12.2.0`); its group is the package of the
    file. A bad one breaks the environment. With a note it has drifted: it may work, but that is not proved."""
    notes: tuple[str, ...] = ()
    """What could not be looked at."""
    hashed: bool = False
    """Whether the content of every file was compared, and not only its size, time and mode."""
    at: str = ""
    """When: ISO 8601 in UTC."""

    @property
    def condition(self) -> Condition:
        """The verdict."""
        if not all(difference.passed for difference in self.differences):
            return "broken"
        return "drifted" if self.differences else "fresh"

    @property
    def why(self) -> str | None:
        """The first reason, as a phrase; None if nothing differs."""
        first = next((one for one in self.differences if not one.passed), next(iter(self.differences), None))
        return f"{first.name}: {first.message}" if first else None

    def to_dict(self) -> dict[str, Any]:
        """This examination as plain JSON values; of very many differences only the first."""
        differences = [
            {
                "subject": difference.name,
                "reason": difference.message,
                "package": difference.group or None,
                "breaks": not difference.passed,
                "hint": difference.hint,
            }
            for difference in self.differences[:MOST]
        ]
        fields = {**Stored.to_dict(dataclasses.replace(self, differences=())), "differences": differences}
        verdict = {"condition": self.condition, "why": self.why, "found": len(self.differences)}
        return {"schema": self.SCHEMA, "environment": self.environment, **verdict, **fields}


def remembered_reason(data: Mapping[str, Any], environment: str) -> str | None:
    """Why the last examination called an environment broken, from its JSON; None if it did not, or the JSON is damaged."""
    known = {"schema": Examination.SCHEMA, "environment": environment, "condition": "broken"}
    why = data.get("why")
    return why if isinstance(why, str) and data == {**data, **known} else None


def describe(examination: Examination) -> list[str]:
    """The examination as lines: the verdict, each reason with its files, by package, and what to do."""
    lines = [f"{examination.condition:<8} {examination.environment}"]
    groups: dict[tuple[str, str, str], list[Check]] = {}
    for difference in examination.differences:
        of_prefix = not difference.name.startswith("/") and "/" in difference.name
        owner = f"package {difference.group}: " if difference.group else "files of no package: " if of_prefix else ""
        reason = difference.message if owner else f"{difference.name}: {difference.message}"
        groups.setdefault((owner, reason, MARKS[difference.state]), []).append(difference)
    for (owner, reason, mark), found in groups.items():
        files = f": {count(len(found), 'file')}" if owner else ""
        lines.append(f"  {mark} {owner}{reason}{files}")
        if owner:
            lines += [f"      {difference.name}" for difference in found[:SHOWN]]
            lines += [f"      … and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
    hints = dict.fromkeys(difference.hint for difference in examination.differences if difference.hint)
    return [*lines, *(f"    hint: {hint}" for hint in hints), *(f"    note: {note}" for note in examination.notes)]


def totals(examinations: Sequence[Examination]) -> str:
    """The verdicts in one line."""
    found = [examination.condition for examination in examinations]
    parts = [f"{found.count(name)} {name}" for name in get_args(Condition) if name in found]
    return ", ".join(parts) or "there is nothing to verify"
