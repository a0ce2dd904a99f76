"""The judge of a proof with Horovod: the checks that N ranks must pass, in the order of likely causes. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from provision.model.verdict import Verdict
from provision.proof import reports as read
from provision.proof.checks import (
    check_accuracy,
    check_allreduce,
    check_gpus,
    check_initial_weights,
    check_loss,
    check_nodes,
    check_peers,
    check_ranks,
    check_reports,
    check_restart,
    check_shards,
    check_versions,
    check_wanted_gpus,
    check_weights,
    figures_of,
)
from provision.proof.reports import Report


def judge(
    reports: Sequence[Report], *, ranks: int, min_accuracy: float, nodes: int | None = None, gpus: bool = False
) -> Verdict:
    """Hold the reports of one proof against each other.

    Args:
        reports: one per process, in any order, including those of processes that failed.
        ranks: how many ranks were started.
        min_accuracy: share of test images, 0..1, that every rank must recognise.
        nodes: how many distinct hosts the ranks must run on, or None to leave the hosts a mere figure. Leave it None
            where all nodes share a host name, as on an emulated cluster.
        gpus: whether every rank must use a GPU.
    """
    finished = read.finished(reports)
    checks = [*check_wanted_gpus(reports), check_reports(reports, ranks)]
    # Without a single finished report there is no evidence to weigh, and ten more failures would only hide the cause.
    if finished:
        checks.append(check_ranks(finished, ranks))
        if nodes is not None:
            checks.append(check_nodes(finished, nodes))
        checks.append(check_versions(finished))
        if gpus or any(read.gpu(report).get("used") for report in finished):
            checks.append(check_gpus(finished))
        checks += [check_allreduce(finished), check_peers(finished), check_shards(finished)]
        if len(finished) > 1:
            checks.append(check_initial_weights(finished))
        if any(report.get("restart") for report in finished):
            checks.append(check_restart(finished))
        checks += [check_weights(finished), check_loss(finished), check_accuracy(finished, min_accuracy)]
    return Verdict(checks=tuple(checks), figures=figures_of(finished))


# --- the checks, one function each ------------------------------------------------------------------------------------
