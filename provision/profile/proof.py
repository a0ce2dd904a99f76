"""The shape of an arch's proof (`[archs.<arch>.proof]`)."""

from __future__ import annotations

from dataclasses import dataclass

from provision.profile.reader import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofSettings:
    """The shape of the proof: nodes, ranks per node, and the time limit in seconds, after which it counts as stalled.

    `slowdown` and `accuracy_loss` are how much worse than its own history a proof may be: a share of the images per second,
    and a difference of the accuracy (0..1).
    """

    nodes: int
    ranks_per_node: int
    timeout_s: int
    slowdown: float = 0.2
    accuracy_loss: float = 0.02

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
        slowdown=table.number("slowdown", 0.2),
        accuracy_loss=table.number("accuracy_loss", 0.02),
    )
    for key, value in (("slowdown", proof.slowdown), ("accuracy_loss", proof.accuracy_loss)):
        if not 0 <= value <= 1:
            table.fault(key, f"must be from 0 to 1, but is {value}")
    table.done()
    return proof
