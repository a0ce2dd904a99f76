"""The shape of an arch's proof (`[archs.<arch>.proof]`)."""

from __future__ import annotations

from dataclasses import dataclass

from provision.profile.reader import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofSettings:
    """The shape of the proof: nodes, ranks per node, and the time limit in seconds, after which it counts as stalled."""

    nodes: int
    ranks_per_node: int
    timeout_s: int

    @property
    def ranks(self) -> int:
        """The number of ranks on all nodes."""
        return self.nodes * self.ranks_per_node


def read_proof(table: Reader) -> ProofSettings:
    """Read `[archs.<arch>.proof]`."""
    proof = ProofSettings(
        nodes=table.integer("nodes", 1, least=1),
        ranks_per_node=table.integer("ranks_per_node", 2, least=1),
        timeout_s=table.integer("timeout_s", 900, least=1),
    )
    table.done()
    return proof
