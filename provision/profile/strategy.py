"""The strategies to train on several devices at a site (`[strategies.<name>]`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from provision.profile.patterns import MODULE, SHELL_PATH
from provision.profile.reader import Reader
from provision.wording import nearest

StrategyName = Literal["single", "mirrored", "multiworker", "horovod", "cray-ml-plugin"]
STRATEGIES: tuple[StrategyName, ...] = ("single", "mirrored", "multiworker", "horovod")
# Strategies that only a site's own modules provide: if a profile names the modules, we can write a job script for them,
# but we can neither build nor prove anything.
PLUGINS: tuple[StrategyName, ...] = ("cray-ml-plugin",)
Status = Literal["recommended", "supported", "deprecated", "absent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """A site's advice on a strategy, with a note. `communication` is how MultiWorkerMirroredStrategy reduces gradients.

    The other values are for plug-ins: the `modules` in order (names, or absolute paths of modulefiles), the `environ` that
    they need, and the `example` that they contain (a path that begins with a `$VARIABLE` that they set) with its `arguments`.
    """

    name: StrategyName
    status: Status
    note: str | None
    communication: Literal["AUTO", "RING", "NCCL"] = "AUTO"
    modules: tuple[str, ...] = ()
    environ: tuple[tuple[str, str], ...] = ()
    example: str | None = None
    arguments: tuple[str, ...] = ()


def read_strategies(table: Reader) -> tuple[Strategy, ...]:
    """Read `[strategies]`."""
    strategies = []
    for name in table.names():
        entry = table.table(name)
        known = (*STRATEGIES, *PLUGINS)
        kind = next((strategy for strategy in known if strategy == name), None)
        if kind is None:
            table.fault(name, f"is not a known strategy{nearest(name, known)}; known: {', '.join(known)}")
            continue
        strategy = Strategy(
            name=kind,
            status=entry.choice("status", ("recommended", "supported", "deprecated", "absent"), "supported"),
            note=entry.optional("note"),
            communication=entry.choice("communication", ("AUTO", "RING", "NCCL"), "AUTO"),
            modules=entry.texts("modules", pattern=MODULE),
            environ=entry.environment("environ"),
            example=entry.optional("example", pattern=SHELL_PATH),
            arguments=entry.texts("arguments", pattern=SHELL_PATH),
        )
        if name in PLUGINS and strategy.status != "absent" and not strategy.modules:
            entry.missing("modules", "a plug-in comes from modules of the site")
        if strategy.example and not strategy.example.startswith("$"):
            entry.fault("example", f"must begin with a `$VARIABLE` that the modules set, but is {strategy.example!r}")
        for key in ("modules", "environ", "example", "arguments"):
            if name not in PLUGINS and getattr(strategy, key):
                entry.fault(key, f"is only for plug-ins: {', '.join(PLUGINS)}")
        entry.done()
        strategies.append(strategy)
    return tuple(strategies)
