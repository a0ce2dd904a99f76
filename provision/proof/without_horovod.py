"""The judge of a proof without Horovod: what `proof/programs/{single,mirrored,multiworker}.py` report, to a verdict. Pure.

The checks are those for Horovod, as far as they fit the strategy, and some of its own: for example, what the replicas of one
process exchange.
"""

from __future__ import annotations

from collections.abc import Sequence

from provision.model.verdict import Check, Verdict, bad, good, judged
from provision.proof.exchange_checks import check_allreduce, check_peers
from provision.proof.figures import figures_of
from provision.proof.gpu_checks import check_gpus, check_missing_gpus
from provision.proof.rank_checks import check_nodes, check_ranks, check_reports, check_versions
from provision.proof.report_text import format_vector, list_values
from provision.proof.reports import (
    Report,
    finished_reports,
    read_gpu,
    read_integer,
    read_list,
    read_mapping,
    read_text,
    to_vector,
)
from provision.proof.training_checks import (
    check_accuracy,
    check_initial_weights,
    check_loss,
    check_restart,
    check_shards,
    check_weights,
)

RESTART_HINT = (
    "training could not continue from the saved model: compare the versions of keras, h5py and numpy with the lock"
)


def judge_single(reports: Sequence[Report], *, min_accuracy: float, gpus: bool = False) -> Verdict:
    """Judge the report of one process on one device.

    Args:
        reports: one or none; if there are more, too many processes were started.
        min_accuracy: share of test images, 0..1, that must be recognised.
        gpus: whether it must use a GPU.
    """
    finished, checks = finished_reports(reports), [*check_missing_gpus(reports), check_reports(reports, 1)]
    if finished:
        checks += _check_one_process(finished)
        if gpus or any(read_gpu(report).get("used") for report in finished):
            checks.append(check_gpus(finished))
        checks += _check_training(finished, min_accuracy)
    return Verdict(checks=tuple(checks), figures=figures_of(finished))


def judge_mirrored(reports: Sequence[Report], *, replicas: int, min_accuracy: float, gpus: bool = False) -> Verdict:
    """Judge the report of one process on several devices.

    Args:
        reports: one or none; if there are more, too many processes were started.
        replicas: how many devices it was to train on at once.
        min_accuracy: share of test images, 0..1, that must be recognised.
        gpus: whether the devices must be GPUs.
    """
    checks = [*check_missing_gpus(reports), *_check_requested_devices(reports), check_reports(reports, 1)]
    finished = finished_reports(reports)
    if finished:
        checks += _check_one_process(finished)
        if gpus:
            checks.append(_check_on_gpus(finished))
        checks += [_check_replicas(finished, replicas), _check_reduction(finished, replicas)]
        checks += [_check_batch(finished, replicas), _check_copies(finished, replicas)]
        checks += _check_training(finished, min_accuracy)
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
    """Compare the reports of workers of MultiWorkerMirroredStrategy with each other.

    Args:
        reports: one per process, in any order, including those of processes that failed.
        workers: how many were started.
        nodes: how many distinct hosts they must run on.
        min_accuracy: share of test images, 0..1, that every worker must recognise.
        gpus: whether every worker must use a GPU.
        stalled: how the first try stalled, if these reports are of the second one.
    """
    finished = finished_reports(reports)
    checks = [*check_missing_gpus(reports), check_reports(reports, workers)]
    if finished:
        checks += [_replace_hint(check_ranks(finished, workers), CLUSTER_HINT), check_nodes(finished, nodes)]
        checks.append(check_versions(finished, ("tensorflow",)))
        if gpus or any(read_gpu(report).get("used") for report in finished):
            checks.append(check_gpus(finished))
        checks.append(_check_communication(finished, stalled))
        for check in (check_allreduce, check_peers, check_shards):
            checks.append(_replace_hint(check(finished), REDUCTION_HINT))
        if len(finished) > 1:
            checks += [check_initial_weights(finished), _check_broadcast(finished)]
        checks += [check_weights(finished), *_check_training(finished, min_accuracy)]
    return Verdict(checks=tuple(checks), figures=figures_of(finished))


def stall_of(reports: Sequence[Report]) -> str | None:
    """How the workers stalled, as text; None if no report mentions a stall."""
    for report in reports:
        stall = read_mapping(report, "stalled")
        if stall:
            communication = read_text(read_mapping(report, "communication"), "asked") or "AUTO"
            return f"{communication} stalled in stage `{stall.get('stage')}`: nothing happened for {stall.get('seconds')} s"
    return None


def _check_one_process(finished: Sequence[Report]) -> list[Check]:
    """One process on one node, of known versions."""
    return [check_ranks(finished, 1), check_nodes(finished, 1), check_versions(finished, ("tensorflow",))]


def _check_training(finished: Sequence[Report], min_accuracy: float) -> list[Check]:
    """Training continued from the saved model, and the model learned."""
    return [
        _replace_hint(check_restart(finished), RESTART_HINT),
        check_loss(finished),
        check_accuracy(finished, min_accuracy),
    ]


def _replace_hint(check: Check, hint: str) -> Check:
    """The check; if it failed, with this hint instead of the one for Horovod."""
    return check if check.passed else bad(check.name, check.message, hint)


# --- workers ----------------------------------------------------------------------------------------------------------

CLUSTER_HINT = (
    "`communication` in the reports lists the addresses that each worker had, and their source; in Slurm start the workers with "
    "srun, one task for each worker"
)
REDUCTION_HINT = (
    'the workers exchanged wrong data, or not with all others: try `communication = "RING"` in `[strategies.multiworker]` '
    "of the site's profile"
)


def _check_communication(finished: Sequence[Report], stalled: str | None) -> Check:
    """All workers had one list of addresses and one way to reduce; the message names a first try that stalled."""
    clusters = [read_mapping(report, "communication") for report in finished]
    seen = {
        (str(cluster.get("asked")), str(cluster.get("by")), *map(str, read_list(cluster, "workers")))
        for cluster in clusters
    }
    if len(seen) != 1:
        return bad(
            "communication",
            f"expected one cluster on all workers, seen {len(seen)}: "
            + "; ".join(" ".join(cluster) for cluster in sorted(seen)[:4]),
            CLUSTER_HINT,
        )
    first = clusters[0]
    message = f"{first.get('asked')}, addresses from {first.get('by')}"
    if first.get("not_by_resolver"):
        message += f" ({first['not_by_resolver']})"
    trained = read_text(finished[0], "trained_by")
    message += f", trained with {trained}" if trained else ""
    return good("communication", f"second try: {message}; {stalled}" if stalled else message)


def _check_broadcast(finished: Sequence[Report]) -> Check:
    """In the strategy's scope, all workers got the chief's weights."""
    seen = {read_text(report, "weights_sha256_broadcast") for report in finished}
    passed = len(seen) == 1 and None not in seen
    return judged(
        "broadcast",
        passed,
        f"expected the chief's weights on {len(finished)} workers before training, seen {len(seen - {None})} sets",
        "the model was not built within the strategy's scope, or each worker is alone",
    )


# --- replicas ---------------------------------------------------------------------------------------------------------

DEVICES_HINT = (
    "compare the GPUs that the job requests with `CUDA_VISIBLE_DEVICES` and `nvidia-smi -L` on the node; TensorFlow "
    "ignores a GPU that it cannot use, without a message"
)


def _check_requested_devices(reports: Sequence[Report]) -> list[Check]:
    """A failed check if the program ended because its strategy had another number of replicas: the cause comes first."""
    for report in reports:
        replicas_report = read_mapping(report, "replicas")
        asked, seen = read_integer(replicas_report, "asked", -1), read_integer(replicas_report, "in_sync", -1)
        if report.get("error") and asked != seen:
            return [_wrong_replicas(asked, seen, list_values(list(read_list(replicas_report, "devices"))))]
    return []


def _check_replicas(finished: Sequence[Report], replicas: int) -> Check:
    """There are as many replicas in sync as requested devices, each on its own device."""
    replicas_report = read_mapping(finished[0], "replicas")
    devices = sorted(set(map(str, read_list(replicas_report, "devices"))))
    if read_integer(replicas_report, "in_sync", -1) != replicas or len(devices) != replicas:
        return _wrong_replicas(
            replicas, min(read_integer(replicas_report, "in_sync", -1), len(devices)), list_values(devices)
        )
    return good("replicas", f"{replicas} replicas in sync: {list_values(devices)}")


def _wrong_replicas(wanted: int, seen: int, devices: str) -> Check:
    return bad(
        "replicas", f"expected {wanted} replicas in sync, each on its own device, seen {seen}: {devices}", DEVICES_HINT
    )


def _check_on_gpus(finished: Sequence[Report]) -> Check:
    """All replicas were on GPUs."""
    devices = [str(device) for device in read_list(read_mapping(finished[0], "replicas"), "devices")]
    elsewhere = [device for device in devices if "GPU" not in device]
    passed = bool(devices) and not elsewhere
    return judged(
        "gpus",
        passed,
        f"{len(devices)} replicas used a GPU each"
        if passed
        else f"expected every replica on a GPU, seen {list_values(elsewhere)}",
        DEVICES_HINT,
    )


def _check_reduction(finished: Sequence[Report], replicas: int) -> Check:
    """A sum over the replicas of known numbers: the input of replica i of N is i + 1 times 1, 2, 3 and so on."""
    reduction = read_mapping(read_mapping(finished[0], "replicas"), "reduced")
    seen = to_vector(reduction.get("sum"))
    factor = replicas * (replicas + 1) // 2
    wanted = [float(factor * number) for number in range(1, len(seen or [0]) + 1)]
    wrong = reduction.get("large_wrong")
    if seen is None or seen != wanted:
        message = f"expected the sum over {replicas} replicas to be {format_vector(wanted)}, "
        message += f"seen {'no vector' if seen is None else format_vector(seen)}"
    elif wrong != 0:
        message = f"expected no wrong element in a sum of {reduction.get('large_elements')} numbers, seen {wrong}"
    else:
        message = f"sum over {replicas} replicas is exactly {format_vector(wanted)}; long vector too"
        return good("allreduce", message)
    hint = "the devices exchanged wrong data: look at NCCL (`NCCL_DEBUG=INFO`, `NCCL_P2P_DISABLE=1`)"
    return bad("allreduce", message, hint)


def _check_batch(finished: Sequence[Report], replicas: int) -> Check:
    """Each replica got its own images, as many as requested, and the global batch is their sum."""
    batch = read_mapping(read_mapping(finished[0], "replicas"), "batch")
    each, whole = read_integer(batch, "per_replica", -1), read_integer(batch, "global", -1)
    images, digests = list(read_list(batch, "images")), {str(digest) for digest in read_list(batch, "sha256")}
    passed = images == [each] * replicas and whole == each * replicas and len(digests) == replicas
    return judged(
        "batch",
        passed,
        f"expected a batch of {whole} divided into {replicas} different ones of {each}, "
        f"seen {list_values(images)} images, {len(digests)} different",
        "the data set was not distributed by the strategy",
    )


def _check_copies(finished: Sequence[Report], replicas: int) -> Check:
    """After training all replicas hold the same weights, to the last bit."""
    digests = [str(digest) for digest in read_list(read_mapping(finished[0], "replicas"), "weights_sha256")]
    seen = sorted(set(digests))
    passed = len(digests) == replicas and len(seen) == 1
    return judged(
        "weights",
        passed,
        f"all {replicas} replicas hold the weights {seen[0][:12]}"
        if passed
        else f"expected identical weights on {replicas} replicas after training, seen {len(digests)} copies, "
        f"{len(seen)} different: {list_values([digest[:12] for digest in seen])}",
        "the gradients were not summed over the replicas",
    )
