"""The judge of a proof without Horovod: what `proof/programs/{single,mirrored,multiworker}.py` report, to a verdict. Pure.

The questions are those of `proof/checks.py`, as far as the strategy has them. One process exchanges nothing with others; what
its replicas exchange is asked here.
"""

from __future__ import annotations

from collections.abc import Sequence

from provision.model.verdict import Check, Verdict
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


def judge_mirrored(reports: Sequence[Report], *, replicas: int, min_accuracy: float, gpus: bool = False) -> Verdict:
    """Hold the report of one process on several devices against what it must show.

    Args:
        reports: one, or none; more than one process was started by mistake.
        replicas: how many devices it was to train on at once.
        min_accuracy: share of test images, 0..1, that must be recognised.
        gpus: whether the devices must be GPUs.
    """
    checks = [*check_wanted_gpus(reports), *_check_asked(reports), check_reports(reports, 1)]
    finished = read.finished(reports)
    if finished:
        checks += _alone(finished)
        if gpus:
            checks.append(_check_on_gpus(finished))
        checks += [_check_replicas(finished, replicas), _check_reduction(finished, replicas)]
        checks += [_check_batch(finished, replicas), _check_copies(finished, replicas)]
        checks += _trained(finished, min_accuracy)
    return Verdict(checks=tuple(checks), figures=figures_of(finished))


def judge_workers(
    reports: Sequence[Report],
    *,
    workers: int,
    nodes: int,
    min_accuracy: float,
    gpus: bool = False,
    stalled: str | None = None,
) -> Verdict:
    """Hold the reports of workers under MultiWorkerMirroredStrategy against each other.

    Args:
        reports: one per process, in any order, including those of processes that failed.
        workers: how many were started.
        nodes: how many distinct hosts they must run on.
        min_accuracy: share of test images, 0..1, that every worker must recognise.
        gpus: whether every worker must use a GPU.
        stalled: how the first try stalled, where these reports are of a second one.
    """
    finished = read.finished(reports)
    checks = [*check_wanted_gpus(reports), check_reports(reports, workers)]
    if finished:
        checks += [_hinted(check_ranks(finished, workers), CLUSTER_HINT), check_nodes(finished, nodes)]
        checks.append(check_versions(finished, ("tensorflow",)))
        if gpus or any(read.gpu(report).get("used") for report in finished):
            checks.append(check_gpus(finished))
        checks.append(_check_communication(finished, stalled))
        for check in (check_allreduce, check_peers, check_shards):
            checks.append(_hinted(check(finished), REDUCTION_HINT))
        if len(finished) > 1:
            checks += [check_initial_weights(finished), _check_broadcast(finished)]
        checks += [check_weights(finished), *_trained(finished, min_accuracy)]
    return Verdict(checks=tuple(checks), figures=figures_of(finished))


def stall_of(reports: Sequence[Report]) -> str | None:
    """How the workers stalled, in words; None where none says so."""
    for report in reports:
        told = read.mapping(report, "stalled")
        if told:
            asked = read.text_of(read.mapping(report, "communication"), "asked") or "AUTO"
            return f"{asked} stalled in stage `{told.get('stage')}`: nothing happened for {told.get('seconds')} s"
    return None


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


# --- workers ----------------------------------------------------------------------------------------------------------

CLUSTER_HINT = (
    "look at `communication` in the reports: which addresses each worker had, and by what; under Slurm start it by srun, "
    "one task for each worker"
)
REDUCTION_HINT = (
    'the workers exchanged wrong data, or not with all others: try `communication = "RING"` in `[strategies.multiworker]` '
    "of the site's file"
)


def _check_communication(finished: Sequence[Report], stalled: str | None) -> Check:
    """All workers had one list of addresses and one way to reduce; a first try that stalled is told."""
    told = [read.mapping(report, "communication") for report in finished]
    seen = {(str(one.get("asked")), str(one.get("by")), *map(str, read.listing(one, "workers"))) for one in told}
    if len(seen) != 1:
        return Check(
            name="communication",
            passed=False,
            message=f"expected one cluster on all workers, seen {len(seen)}: "
            + "; ".join(" ".join(one) for one in sorted(seen)[:4]),
            hint=CLUSTER_HINT,
        )
    first = told[0]
    message = f"{first.get('asked')}, addresses by {first.get('by')}"
    if first.get("not_by_resolver"):
        message += f" ({first['not_by_resolver']})"
    trained = read.text_of(finished[0], "trained_by")
    message += f", trained by {trained}" if trained else ""
    return Check(name="communication", passed=True, message=f"second try: {message}; {stalled}" if stalled else message)


def _check_broadcast(finished: Sequence[Report]) -> Check:
    """Within the strategy's scope all workers got the chief's weights."""
    seen = {read.text_of(report, "weights_sha256_broadcast") for report in finished}
    passed = len(seen) == 1 and None not in seen
    return Check(
        name="broadcast",
        passed=passed,
        message=f"expected the chief's weights on {len(finished)} workers before training, seen {len(seen - {None})} sets",
        hint=None if passed else "the model was not built within the strategy's scope, or each worker is alone",
    )


# --- replicas ---------------------------------------------------------------------------------------------------------

DEVICES_HINT = (
    "compare the GPUs that the job asks for with `CUDA_VISIBLE_DEVICES` and `nvidia-smi -L` on the node; a GPU that "
    "TensorFlow cannot use is left out in silence"
)


def _check_asked(reports: Sequence[Report]) -> list[Check]:
    """A failed check where the program ended because its strategy had another number of replicas: the cause, first."""
    for report in reports:
        told = read.mapping(report, "replicas")
        asked, seen = read.whole(told, "asked", -1), read.whole(told, "in_sync", -1)
        if report.get("error") and asked != seen:
            return [_replicas(asked, seen, read.listed(list(read.listing(told, "devices"))))]
    return []


def _check_replicas(finished: Sequence[Report], replicas: int) -> Check:
    """As many replicas in sync as devices were asked for, each on a device of its own."""
    told = read.mapping(finished[0], "replicas")
    devices = sorted(set(map(str, read.listing(told, "devices"))))
    if read.whole(told, "in_sync", -1) != replicas or len(devices) != replicas:
        return _replicas(replicas, min(read.whole(told, "in_sync", -1), len(devices)), read.listed(devices))
    return Check(name="replicas", passed=True, message=f"{replicas} replicas in sync: {read.listed(devices)}")


def _replicas(wanted: int, seen: int, devices: str) -> Check:
    return Check(
        name="replicas",
        passed=False,
        message=f"expected {wanted} replicas in sync, each on a device of its own, seen {seen}: {devices}",
        hint=DEVICES_HINT,
    )


def _check_on_gpus(finished: Sequence[Report]) -> Check:
    """All replicas were on GPUs."""
    devices = [str(one) for one in read.listing(read.mapping(finished[0], "replicas"), "devices")]
    elsewhere = [one for one in devices if "GPU" not in one]
    passed = bool(devices) and not elsewhere
    return Check(
        name="gpus",
        passed=passed,
        message=f"{len(devices)} replicas used a GPU each"
        if passed
        else f"expected every replica on a GPU, seen {read.listed(elsewhere)}",
        hint=None if passed else DEVICES_HINT,
    )


def _check_reduction(finished: Sequence[Report], replicas: int) -> Check:
    """A sum over the replicas of known numbers: replica i of N puts in i + 1 times 1, 2, 3 and so on."""
    told = read.mapping(read.mapping(finished[0], "replicas"), "reduced")
    seen = read.vector(told.get("sum"))
    factor = replicas * (replicas + 1) // 2
    wanted = [float(factor * number) for number in range(1, len(seen or [0]) + 1)]
    wrong = told.get("large_wrong")
    if seen is None or seen != wanted:
        message = f"expected the sum over {replicas} replicas to be {read.numbers(wanted)}, "
        message += f"seen {'no vector' if seen is None else read.numbers(seen)}"
    elif wrong != 0:
        message = f"expected no wrong element in a sum of {told.get('large_elements')} numbers, seen {wrong}"
    else:
        message = f"sum over {replicas} replicas is exactly {read.numbers(wanted)}; long vector too"
        return Check(name="allreduce", passed=True, message=message)
    hint = "the devices exchanged wrong data: look at NCCL (`NCCL_DEBUG=INFO`, `NCCL_P2P_DISABLE=1`)"
    return Check(name="allreduce", passed=False, message=message, hint=hint)


def _check_batch(finished: Sequence[Report], replicas: int) -> Check:
    """Each replica was fed images of its own, as many as asked for, and the global batch is their sum."""
    told = read.mapping(read.mapping(finished[0], "replicas"), "batch")
    each, whole = read.whole(told, "per_replica", -1), read.whole(told, "global", -1)
    fed, digests = list(read.listing(told, "images")), {str(one) for one in read.listing(told, "sha256")}
    passed = fed == [each] * replicas and whole == each * replicas and len(digests) == replicas
    return Check(
        name="batch",
        passed=passed,
        message=f"expected a batch of {whole} divided into {replicas} different ones of {each}, "
        f"seen {read.listed(fed)} images, {len(digests)} different",
        hint=None if passed else "the data set was not distributed by the strategy",
    )


def _check_copies(finished: Sequence[Report], replicas: int) -> Check:
    """After training all replicas hold the same weights, to the last bit."""
    digests = [str(one) for one in read.listing(read.mapping(finished[0], "replicas"), "weights_sha256")]
    seen = sorted(set(digests))
    passed = len(digests) == replicas and len(seen) == 1
    return Check(
        name="weights",
        passed=passed,
        message=f"all {replicas} replicas hold the weights {seen[0][:12]}"
        if passed
        else f"expected identical weights on {replicas} replicas after training, seen {len(digests)} copies, "
        f"{len(seen)} different: {read.listed([digest[:12] for digest in seen])}",
        hint=None if passed else "the gradients were not summed over the replicas",
    )
