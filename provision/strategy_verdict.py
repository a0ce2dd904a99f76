"""The judge of a proof without Horovod: what `smoke/single.py` reports, to a verdict. Pure.

The questions are those of `verdict.py`, as far as the strategy has them: one process exchanges nothing with others.
"""

from __future__ import annotations

from collections.abc import Sequence

from provision import testimony as read
from provision.testimony import Report
from provision.verdict import (
    Check,
    Verdict,
    check_accuracy,
    check_gpus,
    check_loss,
    check_nodes,
    check_ranks,
    check_reports,
    check_restart,
    check_versions,
    check_wanted_gpus,
    figures_of,
)

RESTART_HINT = "the saved model could not be gone on with: compare the versions of keras, h5py and numpy with the lock"


def judge_single(reports: Sequence[Report], *, min_accuracy: float, gpus: bool = False) -> Verdict:
    """Hold the report of one process on one device against what it must show.

    Args:
        reports: one, or none; more than one process was started by mistake.
        min_accuracy: share of test images, 0..1, that must be recognised.
        gpus: whether it must use a GPU.
    """
    finished, checks = read.finished(reports), [*check_wanted_gpus(reports), check_reports(reports, 1)]
    if finished:
        checks += _alone(finished)
        if gpus or any(read.gpu(report).get("used") for report in finished):
            checks.append(check_gpus(finished))
        checks += _trained(finished, min_accuracy)
    return Verdict(checks=tuple(checks), figures=figures_of(finished))


def _alone(finished: Sequence[Report]) -> list[Check]:
    """One process on one node, of known versions."""
    return [check_ranks(finished, 1), check_nodes(finished, 1), check_versions(finished, ("tensorflow",))]


def _trained(finished: Sequence[Report], min_accuracy: float) -> list[Check]:
    """It went on where it had saved, and learned."""
    return [
        _hinted(check_restart(finished), RESTART_HINT),
        check_loss(finished),
        check_accuracy(finished, min_accuracy),
    ]


def _hinted(check: Check, hint: str) -> Check:
    """A check whose hint, if it failed, is another than the one for Horovod."""
    return check if check.passed else Check(name=check.name, passed=False, message=check.message, hint=hint)
