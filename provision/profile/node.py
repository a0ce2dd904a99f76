"""The shape of an arch's nodes, as `[archs.<arch>.node]` describes it."""

from __future__ import annotations

from dataclasses import dataclass

from provision.profile.reader import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node: sockets, physical cores and hardware threads of the whole node (0: not given).

    `memory_gb` is in GiB (2³⁰ bytes), as schedulers count `G`, though sites' pages and the key call it GB.
    """

    sockets: int
    cores: int
    threads: int
    memory_gb: int


def read_node(table: Reader) -> Node | None:
    """The node of `[archs.<arch>.node]`, None where that table is left out."""
    if not table.names():
        return None
    cores = table.integer("cores", least=1)
    node = Node(
        sockets=table.integer("sockets", 1, least=1),
        cores=cores,
        threads=table.integer("threads", cores, least=1),
        memory_gb=table.integer("memory_gb", 0),
    )
    if node.cores > 1 and node.cores % node.sockets:  # 1 stands for what is a fault already
        table.fault("cores", f"is of the whole node, and {node.cores} does not divide by {node.sockets} sockets")
    if node.threads % node.cores:
        table.fault("threads", f"is of the whole node, and {node.threads} is no multiple of its {node.cores} cores")
    table.done()
    return node
