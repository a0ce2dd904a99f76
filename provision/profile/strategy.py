"""Ways to train on several devices at a site, as `[strategies.<name>]` describes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from provision.profile.patterns import MODULE, SHELL_PATH
from provision.profile.reader import Reader
from provision.wording import nearest

StrategyName = Literal["single", "mirrored", "multiworker", "horovod", "cray-ml-plugin"]
STRATEGIES: tuple[StrategyName, ...] = ("single", "mirrored", "multiworker", "horovod")
# Those that only a site's own modules bring: a job's script can be written for them where a profile names the modules,
# and nothing can be built or proved.
PLUGINS: tuple[StrategyName, ...] = ("cray-ml-plugin",)
Status = Literal["recommended", "supported", "deprecated", "absent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """What a site says of a strategy, and why. `communication` is how MultiWorkerMirroredStrategy reduces.

    The rest is a plug-in's: its `modules` in order (a name, or a modulefile by its absolute path), what they need of the
    `environ`, and the `example` that comes with them (a path by a `$VARIABLE` that they set) with its `arguments`.
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
    """The strategies of `[strategies]`."""
    found = []
    for name in table.names():
        one = table.table(name)
        known = (*STRATEGIES, *PLUGINS)
        if name not in known:
            table.fault(name, f"is no strategy; there are {', '.join(known)}{nearest(name, known)}")
        strategy = Strategy(
            name=name,  # type: ignore[arg-type]
            status=one.text(  # type: ignore[arg-type]
                "status", "supported", choices=("recommended", "supported", "deprecated", "absent")
            ),
            note=one.optional("note"),
            communication=one.text("communication", "AUTO", choices=("AUTO", "RING", "NCCL")),  # type: ignore[arg-type]
            modules=one.texts("modules", pattern=MODULE),
            environ=one.environment("environ"),
            example=one.optional("example", pattern=SHELL_PATH),
            arguments=one.texts("arguments", pattern=SHELL_PATH),
        )
        if name in PLUGINS and strategy.status != "absent" and not strategy.modules:
            one.fault("modules", "missing; a plug-in is what the site's modules bring")
        if strategy.example and not strategy.example.startswith("$"):
            one.fault("example", f"begins with a `$VARIABLE` that the modules set, is {strategy.example!r}")
        for key in ("modules", "environ", "example", "arguments"):
            if name not in PLUGINS and getattr(strategy, key):
                one.fault(key, f"is of plug-ins only: {', '.join(PLUGINS)}")
        one.done()
        found.append(strategy)
    return tuple(found)
