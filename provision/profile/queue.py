"""The limits of a queue and the kind of its nodes (`[archs.<arch>.queues.<queue>]`)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from provision.profile.job import CONSTRAINT
from provision.profile.patterns import NAME, TIME
from provision.profile.reader import Reader

# `24: 03:00:00`: jobs of up to 24 nodes have three hours.
UP_TO = re.compile(r"[1-9][0-9]{0,5}: " + TIME.pattern)


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """The limits of a queue (in Slurm a partition or QOS) for one job of this arch: nodes and time (None: no limit).

    `times` are the limits for jobs of up to this many nodes, the smallest number first; `time` is that of larger jobs. `qos`: it
    is a QOS beside the partition of `[archs.<arch>.job]`, not a partition. `constraint` selects its nodes instead of the
    constraint of `[archs.<arch>.job]`. `run_with` are words before the program of each rank: on nodes in another memory mode,
    `numactl`.
    """

    name: str
    least_nodes: int
    most_nodes: int | None
    time: str | None
    constraint: str | None = None
    run_with: tuple[str, ...] = ()
    qos: bool = False
    times: tuple[tuple[int, str], ...] = ()

    def time_for(self, nodes: int) -> str | None:
        """The time limit of a job of this many nodes; None: no limit."""
        return next((time for most, time in self.times if nodes <= most), self.time)


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
            qos=entry.flag("qos", False),
            times=_read_times(entry.texts("times", pattern=UP_TO)),
        )
        if queue.most_nodes is not None and queue.most_nodes < queue.least_nodes:
            entry.fault("most_nodes", f"is less than `least_nodes` ({queue.least_nodes})")
        entry.done()
        queues.append(queue)
    return tuple(queues)


def _read_times(texts: tuple[str, ...]) -> tuple[tuple[int, str], ...]:
    """The numbers of nodes and the time limits of such texts, the fewest nodes first."""
    pairs = (text.split(": ") for text in texts if UP_TO.fullmatch(text))
    return tuple(sorted((int(most), time) for most, time in pairs))
