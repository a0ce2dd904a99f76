"""Checks of the training (shards and batches, weights, restart, loss, accuracy), and of the numerical proof. Pure.

In a numerical proof each process compares its own figures with those of one process on the concatenated batches. Here it
is decided whether all processes did so with the same result.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from provision.model.check import Check, bad, good, judged, skipped
from provision.proof.reports import Report, Run, format_figure, list_values

SAMPLER_HINT = "torch's `DistributedSampler` must get the number of ranks, the own rank, and each epoch by `set_epoch`"


def check_shards(run: Run) -> Check:
    """No training image belongs to two ranks, and all ranks have equally many."""
    name = "shards"
    slices: list[tuple[int, int, Report]] = []
    for report in run.finished:
        shard = report.part("shard")
        start, stop = shard.integer("start"), shard.integer("stop")
        if start < 0 or stop <= start or not shard.get("sha256"):
            return bad(name, f"expected a slice of the training images, {report} reports {shard.fields!r}")
        slices.append((start, stop, report))
    slices.sort(key=lambda shard_slice: shard_slice[:2])
    for (_, stop, left), (start, _, right) in pairwise(slices):
        if start < stop or left.part("shard").get("sha256") == right.part("shard").get("sha256"):
            return bad(
                name,
                f"expected disjoint shards of the training images, but {left} and {right} trained on the same ones",
                "both processes used the same rank number; see the check `ranks`",
            )
    for report in run.finished:
        shard = report.part("shard")
        orders, shared = shard.texts("orders"), shard.integer("shared", 0)
        if shared:
            return bad(name, f"{report} counted {shared} images that two ranks trained on in one epoch", SAMPLER_HINT)
        if len(set(orders)) < len(orders):
            seen = (
                f"expected another order of the images in each of {len(orders)} epochs, {report} had {len(set(orders))}"
            )
            return bad(name, seen, SAMPLER_HINT)
    lengths = sorted({stop - start for start, stop, _ in slices})
    if len(lengths) > 1:
        return bad(name, f"expected shards of equal size, seen from {lengths[0]} to {lengths[-1]}")
    return good(name, f"{len(slices)} disjoint shards of {lengths[0]} images")


def check_batch(run: Run) -> Check:
    """Each replica got its own images, as many as requested, and the global batch is their sum."""
    replicas, batch = run.proof.devices, run.finished[0].part("replicas").part("batch")
    each, whole = batch.integer("per_replica"), batch.integer("global")
    images, digests = list(batch.values("images")), {str(digest) for digest in batch.values("sha256")}
    return judged(
        "batch",
        images == [each] * replicas and whole == each * replicas and len(digests) == replicas,
        f"expected a batch of {whole} divided into {replicas} different ones of {each}, "
        f"seen {list_values(images)} images, {len(digests)} different",
        "the data set was not distributed by the strategy",
    )


def check_initial_weights(run: Run) -> Check:
    """The ranks started from different weights; otherwise equal weights at the end prove no broadcast."""
    seen = {report.text("weights_sha256_initial") for report in run.finished}
    return judged(
        "initial-weights",
        len(seen) == len(run.finished) and None not in seen,
        f"expected {len(run.finished)} different sets of weights before the broadcast, seen {len(seen - {None})}",
        "equal weights at the end then prove no broadcast; each rank's seed is its number, so see the check `ranks`",
    )


def check_broadcast(run: Run) -> Check:
    """In the strategy's scope, all workers got the chief's weights."""
    seen = {report.text("weights_sha256_broadcast") for report in run.finished}
    return judged(
        "broadcast",
        len(seen) == 1 and None not in seen,
        f"expected the chief's weights on {len(run.finished)} workers before training, seen {len(seen - {None})} sets",
        "the model was not built within the strategy's scope, or each worker is alone",
    )


def check_restart(run: Run) -> Check:
    """The second session continued on every rank at the step and with the weights that rank 0 had saved."""
    root = min(run.finished, key=lambda report: report.integer("rank"))
    saved = root.part("restart")
    for report in run.finished:
        began = report.part("restart")
        weights = str(began.get("began_sha256"))[:12], (saved.text("saved_sha256") or "(none)")[:12]
        for what, seen, wanted in (
            ("at step", began.integer("began_at"), saved.integer("saved_at", -2)),
            ("with the weights", *weights),
        ):
            if seen != wanted:
                return bad(
                    "restart",
                    f"expected to continue {what} {wanted} of rank 0's checkpoint, {report} began {what} {seen}",
                    "rank 0 could not read its checkpoint, or the broadcast that follows did not reach all ranks",
                )
    return good("restart", f"continued at step {saved.integer('saved_at')} with the weights of rank 0's checkpoint")


def check_weights(run: Run) -> Check:
    """After training all ranks, or all replicas of one process, hold the same weights, to the last bit."""
    one_process = run.proof.devices > 1
    copies = (
        [str(digest) for digest in run.finished[0].part("replicas").values("weights_sha256")]
        if one_process
        else [report.text("weights_sha256") or "none" for report in run.finished]
    )
    who = f"{run.proof.devices} replicas" if one_process else f"{len(run.finished)} ranks"
    seen = sorted(set(copies))
    if len(seen) == 1 and seen != ["none"] and len(copies) == len(run.finished) * run.proof.devices:
        return good(
            "weights", f"{'the rank holds' if len(copies) == 1 else f'all {who} hold'} the weights {seen[0][:12]}"
        )
    reported = (report.number("weights_max_difference") for report in run.finished)
    differences = [difference for difference in reported if difference is not None]
    distance = f", up to {max(differences):.2g} away from rank 0's" if differences else ""
    return bad(
        "weights",
        f"expected identical weights on {who} after training, seen {len(seen)} different sets in {len(copies)} copies"
        f"{distance}: {list_values([digest[:12] for digest in seen])}",
        "differences near 1e-7 are rounding: ranks on different processors or with different builds; larger ones mean "
        "that the weights were not broadcast or the gradients not summed",
    )


def check_loss(run: Run) -> Check:
    """Training had an effect on every rank: the last loss is a number and below the one before training."""
    name = "loss"
    for report in run.finished:
        before, last = report.number("loss_before"), report.last_loss
        if before is None or last is None or not last < before:
            return bad(
                name,
                f"expected the loss to fall, {report} has {format_figure(before)} before training and "
                f"{format_figure(last)} at the end",
                "not a number: the learning rate, which grows with the ranks, is too high, or the sums are wrong"
                if last is None
                else "training did not learn; see the checks `allreduce` and `weights`",
            )
    before, last = run.finished[0].number("loss_before"), run.finished[0].last_loss
    return good(name, f"loss fell from {format_figure(before)} to {format_figure(last)}")


def check_accuracy(run: Run) -> Check:
    """Every rank's model recognises enough test images."""
    worst = min(run.finished, key=lambda report: report.number("accuracy") or 0.0)
    lowest = worst.number("accuracy")
    passed = lowest is not None and lowest >= run.min_accuracy
    return judged(
        "accuracy",
        passed,
        f"expected a test accuracy of at least {run.min_accuracy:.4f}, seen {format_figure(lowest)}"
        + ("" if passed else f" on {worst}"),
        "if all other checks passed, the run was too short for its number of ranks: give it more epochs or a "
        "smaller batch per rank",
    )


def check_numbers(run: Run) -> list[Check]:
    """One check for each check of the program, and a failed one if none has figures."""
    names = dict.fromkeys(name for report in run.finished for name in report.part("checks").fields)
    checks = [_check_all_ranks(run, str(name)) for name in names]
    if all(check.skipped for check in checks):
        checks.append(bad("checks", "expected checks with figures, no process has any"))
    return checks


def _check_all_ranks(run: Run, name: str) -> Check:
    """One check of the program, on all ranks: passed everywhere, or skipped everywhere for the same reason."""
    records = [report.part("checks").part(name) for report in run.finished]
    states = {str(record.get("status")) for record in records}
    reasons = [str(record.get("reason")) for record in records if record.get("reason")]
    if states == {"skipped"}:
        return skipped(name, f"skipped: {reasons[0] if reasons else 'no reason given'}")
    if states != {"passed"}:
        reason = f": {reasons[0]}" if reasons else ""
        return bad(name, f"expected it to pass on every rank, seen {', '.join(sorted(states))}{reason}")
    figures = [
        Report(figure) for record in records for figure in record.values("figures") if isinstance(figure, Mapping)
    ]
    measured = [difference for figure in figures if (difference := figure.number("difference")) is not None]
    worst = f"worst difference {max(measured):.1e} of {len(measured)}" if measured else "no figure to compare"
    return Check(
        name=name, passed=True, message=f"passed on {len(records)} ranks, {worst}", figure=max(measured, default=None)
    )
