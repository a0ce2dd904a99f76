"""The shape of an arch's proof (`[archs.<arch>.proof]`)."""

from dataclasses import dataclass
from typing import Annotated

from provision.profile.reader import FormRule, Positive


def not_a_share(value: float) -> str | None:
    """What is wrong with a number that is not a share."""
    return None if 0 <= value <= 1 else f"must be from 0 to 1, but is {value}"


Share = Annotated[float, FormRule(not_a_share)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofSettings:
    """The shape of the proof: nodes, ranks per node, and the time limit in seconds, after which it counts as stalled.

    `slowdown` and `accuracy_loss` are how much worse than its own history a proof may be: a share of the images per second,
    and a difference of the accuracy (0..1).
    """

    nodes: Positive = 1
    ranks_per_node: Positive = 2
    timeout_s: Positive = 900
    slowdown: Share = 0.2
    accuracy_loss: Share = 0.02

    @property
    def ranks(self) -> int:
        """The number of ranks on all nodes."""
        return self.nodes * self.ranks_per_node
