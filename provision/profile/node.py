"""The hardware of an arch's nodes (`[archs.<arch>.node]`)."""

from __future__ import annotations

from dataclasses import dataclass

from provision.profile.reader import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node: its sockets, and the physical cores and hardware threads of all sockets (0: not known).

    `memory_gb` is in GiB (2³⁰ bytes), as schedulers count `G`, although the pages of sites and the key call it GB.
    """

    sockets: int
    cores: int
    threads: int
    memory_gb: int


def read_node(table: Reader) -> Node | None:
    """Read `[archs.<arch>.node]`; None if the profile does not have that table."""
    if not table.names():
        return None
    cores = table.integer("cores", least=1)
    node = Node(
        sockets=table.integer("sockets", 1, least=1),
        cores=cores,
        threads=table.integer("threads", cores, least=1),
        memory_gb=table.integer("memory_gb", 0),
    )
    if node.cores > 1 and node.cores % node.sockets:  # 1 replaces a value that is already a fault
        table.fault("cores", f"is for the whole node, but {node.cores} is not a multiple of its {node.sockets} sockets")
    if node.threads % node.cores:
        table.fault("threads", f"is for the whole node, but {node.threads} is not a multiple of its {node.cores} cores")
    table.done()
    return node
