"""Whether the figures of a proof are those of the same environment before: its own history is the reference. Pure.

ReFrame compares the figures of a test with references that a site writes by hand; here the earlier proofs are the reference.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from provision.model.proof_result import ProofResult
from provision.profile.proof import ProofSettings
from provision.wording import count

LEAST = 3
"""With fewer comparable proofs before, nothing is judged: one slow day would be the reference."""


def comparable(earlier: Sequence[ProofResult], now: ProofResult) -> list[ProofResult]:
    """The earlier proofs that passed with the same data, ranks, nodes and GPUs."""

    def shape(proof: ProofResult) -> tuple[object, ...]:
        figures = proof.verdict.figures
        return (proof.data, figures.ranks, len(figures.hosts), figures.gpus)

    return [proof for proof in earlier if proof.verdict.passed and shape(proof) == shape(now)]


def judge_history(earlier: Sequence[ProofResult], now: ProofResult, settings: ProofSettings) -> tuple[str, ...]:
    """What is worse than in the history by more than the site tolerates, as phrases; nothing if the history is too short."""
    before, findings = comparable(earlier, now), []
    speeds = [one.verdict.figures.images_per_second for one in before]
    known = [speed for speed in speeds if speed]
    speed = now.verdict.figures.images_per_second
    if len(known) >= LEAST and speed:
        usual = statistics.median(known)
        if speed < usual * (1 - settings.slowdown):
            findings.append(
                f"{speed:,.0f} images/s are {1 - speed / usual:.0%} below the median of {count(len(known), 'earlier proof')} "
                f"({usual:,.0f}); {settings.slowdown:.0%} are tolerated"
            )
    accuracies = [one.verdict.figures.accuracy for one in before]
    right = [accuracy for accuracy in accuracies if accuracy is not None]
    accuracy = now.verdict.figures.accuracy
    if len(right) >= LEAST and accuracy is not None:
        usual = statistics.median(right)
        if accuracy < usual - settings.accuracy_loss:
            findings.append(
                f"an accuracy of {accuracy:.1%} is below the median of {count(len(right), 'earlier proof')} ({usual:.1%}); "
                f"{settings.accuracy_loss:.1%} less are tolerated"
            )
    return tuple(findings)
