"""Ways to train on several devices at a site, as `[strategies.<name>]` describes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from provision.model.reader import Reader, nearest

StrategyName = Literal["single", "mirrored", "multiworker", "horovod"]
STRATEGIES: tuple[StrategyName, ...] = ("single", "mirrored", "multiworker", "horovod")
Status = Literal["recommended", "supported", "deprecated", "absent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """What a site says of a strategy, and why. `communication` is how MultiWorkerMirroredStrategy reduces."""

    name: StrategyName
    status: Status
    note: str | None
    communication: Literal["AUTO", "RING", "NCCL"]


def read_strategies(table: Reader) -> tuple[Strategy, ...]:
    """The strategies of `[strategies]`."""
    found = []
    for name in table.names():
        one = table.table(name)
        if name not in STRATEGIES:
            table.fault(name, f"is no strategy; there are {', '.join(STRATEGIES)}{nearest(name, STRATEGIES)}")
        found.append(
            Strategy(
                name=name,  # type: ignore[arg-type]
                status=one.text(  # type: ignore[arg-type]
                    "status", "supported", choices=("recommended", "supported", "deprecated", "absent")
                ),
                note=one.optional("note"),
                communication=one.text("communication", "AUTO", choices=("AUTO", "RING", "NCCL")),  # type: ignore[arg-type]
            )
        )
        one.done()
    return tuple(found)
