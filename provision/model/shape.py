"""The shape of a job: how many nodes, and what is on each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Nodes, ranks on each, the CPUs of each rank as the scheduler counts them (0: not given), and the GPUs of each node.

    `devices` is how many devices each rank trains on at once: GPUs, or parts of a CPU that stand for them.
    """

    nodes: int
    ranks_per_node: int
    cpus_per_rank: int
    gpus_per_node: int
    devices: int = 1

    @property
    def ranks(self) -> int:
        """The number of ranks on all nodes."""
        return self.nodes * self.ranks_per_node
