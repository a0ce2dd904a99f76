"""The shape of an arch's proof, as `[archs.<arch>.proof]` describes it."""

from __future__ import annotations

from dataclasses import dataclass

from provision.profile.reader import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofSettings:
    """The shape of the proof: how many nodes and ranks per node, and how long (seconds) until a stall is called one."""

    nodes: int
    ranks_per_node: int
    timeout_s: int

    @property
    def ranks(self) -> int:
        """Ranks in all."""
        return self.nodes * self.ranks_per_node


def read_proof(table: Reader) -> ProofSettings:
    """The proof's shape of `[archs.<arch>.proof]`."""
    proof = ProofSettings(
        nodes=table.integer("nodes", 1, least=1),
        ranks_per_node=table.integer("ranks_per_node", 2, least=1),
        timeout_s=table.integer("timeout_s", 900, least=1),
    )
    table.done()
    return proof
