"""A trace: one thing of the machine that an environment depends on, with its value when the environment was proved. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from provision.model.check import Check, observed
from provision.model.stored import Stored

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
    differences, skipped = [], 0
    for trace in traces:
        if not same_node and trace.kind in ("system", "library"):
            skipped += 1
            continue
        now = measure(trace.kind, trace.subject)
        if now == trace.value:
            continue
        name = {"module": f"module {trace.subject}", "library": trace.subject}.get(trace.kind, trace.subject)
        if now is None:
            breaks = trace.kind in ("python", "library", "module")
            differences.append(observed("", "bad" if breaks else "note", GONE[trace.kind], name=name, hint=AGAIN))
        else:
            differences.append(observed("", "note", _changed(trace, now), name=name, hint=AGAIN))
    notes = []
    if skipped:
        notes.append(
            "a job proved it, and this is not one: the system and its libraries were not compared; verify in a job"
        )
    return differences, notes


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
