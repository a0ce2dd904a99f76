"""The judge of a proof with Horovod: the checks that N ranks must pass, in the order of likely causes. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from provision.model.verdict import Verdict
from provision.proof.exchange_checks import check_allreduce, check_peers
from provision.proof.figures import figures_of
from provision.proof.gpu_checks import check_gpus, check_missing_gpus
from provision.proof.rank_checks import check_nodes, check_ranks, check_reports, check_versions
from provision.proof.reports import Report, finished_reports, read_gpu
from provision.proof.training_checks import (
    check_accuracy,
    check_initial_weights,
    check_loss,
    check_restart,
    check_shards,
    check_weights,
)


def judge(
    reports: Sequence[Report], *, ranks: int, min_accuracy: float, nodes: int | None = None, gpus: bool = False
) -> Verdict:
    """Compare the reports of one proof with each other.

    Args:
        reports: one per process, in any order, including those of processes that failed.
        ranks: how many ranks were started.
        min_accuracy: share of test images, 0..1, that every rank must recognise.
        nodes: how many distinct hosts the ranks must run on, or None not to check the hosts: all nodes of an emulated
            cluster have one host name.
        gpus: whether every rank must use a GPU.
    """
    finished = finished_reports(reports)
    checks = [*check_missing_gpus(reports), check_reports(reports, ranks)]
    # Without a finished report, ten more failed checks would only hide the cause.
    if finished:
        checks.append(check_ranks(finished, ranks))
        if nodes is not None:
            checks.append(check_nodes(finished, nodes))
        checks.append(check_versions(finished))
        if gpus or any(read_gpu(report).get("used") for report in finished):
            checks.append(check_gpus(finished))
        checks += [check_allreduce(finished), check_peers(finished), check_shards(finished)]
        if len(finished) > 1:
            checks.append(check_initial_weights(finished))
        if any(report.get("restart") for report in finished):
            checks.append(check_restart(finished))
        checks += [check_weights(finished), check_loss(finished), check_accuracy(finished, min_accuracy)]
    return Verdict(checks=tuple(checks), figures=figures_of(finished))
