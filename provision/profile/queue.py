"""The limits of a queue and the kind of its nodes (`[archs.<arch>.queues.<queue>]`)."""

from __future__ import annotations

from dataclasses import dataclass

from provision.profile.job import CONSTRAINT
from provision.profile.patterns import NAME, TIME
from provision.profile.reader import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """The limits of a queue (in Slurm a partition or QOS) for one job of this arch: nodes and time (None: no limit).

    `constraint` selects its nodes instead of the constraint of `[archs.<arch>.job]`. `run_with` are words before the program of
    each rank: on nodes in another memory mode, `numactl`.
    """

    name: str
    least_nodes: int
    most_nodes: int | None
    time: str | None
    constraint: str | None = None
    run_with: tuple[str, ...] = ()


def read_queues(table: Reader) -> tuple[Queue, ...]:
    """Read `[archs.<arch>.queues]`."""
    queues = []
    for name in table.names(pattern=NAME, what="a queue"):
        entry = table.table(name)
        nodes = entry.integer("most_nodes", 0)
        queue = Queue(
            name=name,
            least_nodes=entry.integer("least_nodes", 1, least=1),
            most_nodes=nodes or None,
            time=entry.optional("time", pattern=TIME),
            constraint=entry.optional("constraint", pattern=CONSTRAINT),
            run_with=entry.texts("run_with"),
        )
        if queue.most_nodes is not None and queue.most_nodes < queue.least_nodes:
            entry.fault("most_nodes", f"is less than `least_nodes` ({queue.least_nodes})")
        entry.done()
        queues.append(queue)
    return tuple(queues)
