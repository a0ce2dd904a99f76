"""What a queue takes, as `[archs.<arch>.queues.<queue>]` describes it."""

from __future__ import annotations

from dataclasses import dataclass

from provision.profile.patterns import TIME
from provision.profile.reader import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """The limits of a queue (a partition or QOS of Slurm) for one job of this arch: nodes, and a time (None: no limit)."""

    name: str
    least_nodes: int
    most_nodes: int | None
    time: str | None


def read_queues(table: Reader) -> tuple[Queue, ...]:
    """The queues of `[archs.<arch>.queues]`."""
    found = []
    for name in table.names():
        one = table.table(name)
        nodes = one.integer("most_nodes", 0)
        queue = Queue(
            name=name,
            least_nodes=one.integer("least_nodes", 1, least=1),
            most_nodes=nodes or None,
            time=one.optional("time", pattern=TIME),
        )
        if queue.most_nodes is not None and queue.most_nodes < queue.least_nodes:
            one.fault("most_nodes", f"is less than `least_nodes`, {queue.least_nodes}")
        one.done()
        found.append(queue)
    return tuple(found)
