"""Checks of the training: shards of the data, weights, restart, loss and accuracy. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from provision.model.verdict import Check, bad, good, judged
from provision.proof.report_text import format_figure, list_values, name_process
from provision.proof.reports import Report, read_integer, read_last_loss, read_mapping, read_number, read_text


def check_shards(finished: Sequence[Report]) -> Check:
    """No training image belongs to two ranks, and all ranks have equally many."""
    name = "shards"
    slices: list[tuple[int, int, Report]] = []
    for report in finished:
        shard = read_mapping(report, "shard")
        start, stop = read_integer(shard, "start", -1), read_integer(shard, "stop", -1)
        if start < 0 or stop <= start or not shard.get("sha256"):
            return bad(name, f"expected a slice of the training images, {name_process(report)} reports {dict(shard)!r}")
        slices.append((start, stop, report))
    slices.sort(key=lambda shard_slice: shard_slice[:2])
    for (_, stop, left), (start, _, right) in pairwise(slices):
        if start < stop or read_mapping(left, "shard")["sha256"] == read_mapping(right, "shard")["sha256"]:
            return bad(
                name,
                f"expected disjoint shards of the training images, but {name_process(left)} "
                f"and {name_process(right)} trained on the same ones",
                "both processes used the same rank number; see the check `ranks`",
            )
    lengths = sorted({stop - start for start, stop, _ in slices})
    if len(lengths) > 1:
        return bad(name, f"expected shards of equal size, seen from {lengths[0]} to {lengths[-1]}")
    return good(name, f"{len(slices)} disjoint shards of {lengths[0]} images")


def check_initial_weights(finished: Sequence[Report]) -> Check:
    """The ranks started from different weights; otherwise equal weights at the end prove no broadcast."""
    seen = {read_text(report, "weights_sha256_initial") for report in finished}
    passed = len(seen) == len(finished) and None not in seen
    return judged(
        "initial-weights",
        passed,
        f"expected {len(finished)} different sets of weights before the broadcast, seen {len(seen - {None})}",
        "equal weights at the end then prove no broadcast; each rank's seed is its number, so see the check `ranks`",
    )


def check_restart(finished: Sequence[Report]) -> Check:
    """The second session continued on every rank at the step and with the weights that rank 0 had saved."""
    root = min(finished, key=lambda report: read_integer(report, "rank", -1))
    saved = read_mapping(root, "restart")
    for report in finished:
        began = read_mapping(report, "restart")
        for what, seen, wanted in (
            ("at step", read_integer(began, "began_at", -1), read_integer(saved, "saved_at", -2)),
            ("with the weights", str(began.get("began_sha256"))[:12], str(saved.get("saved_sha256"))[:12]),
        ):
            if seen != wanted:
                return bad(
                    "restart",
                    f"expected to continue {what} {wanted} of rank 0's checkpoint, "
                    f"{name_process(report)} began {what} {seen}",
                    "rank 0 could not read its checkpoint, or the broadcast that follows did not reach all ranks",
                )
    message = f"continued at step {read_integer(saved, 'saved_at', -1)} with the weights of rank 0's checkpoint"
    return good("restart", message)


def check_weights(finished: Sequence[Report]) -> Check:
    """After training all ranks hold the same weights, to the last bit."""
    name = "weights"
    seen = Counter(read_text(report, "weights_sha256") or "none" for report in finished)
    if len(seen) == 1 and "none" not in seen:
        whose = "all ranks hold" if len(finished) > 1 else "the rank holds"
        return good(name, f"{whose} the weights {next(iter(seen))[:12]}")
    reported = (read_number(report, "weights_max_difference") for report in finished)
    differences = [difference for difference in reported if difference is not None]
    distance = f", up to {max(differences):.2g} away from rank 0's" if differences else ""
    return bad(
        name,
        f"expected identical weights on {len(finished)} ranks after training, seen {len(seen)} different sets"
        f"{distance}: {list_values([digest[:12] for digest in sorted(seen)])}",
        "differences near 1e-7 are rounding: ranks on different processors or with different builds; larger ones mean "
        "that the weights were not broadcast or the gradients not summed",
    )


def check_loss(finished: Sequence[Report]) -> Check:
    """Training had an effect on every rank: the last loss is a number and below the one before training."""
    name = "loss"
    for report in finished:
        before, last = read_number(report, "loss_before"), read_last_loss(report)
        if before is None or last is None or not last < before:
            return bad(
                name,
                f"expected the loss to fall, {name_process(report)} has {format_figure(before)} before training and "
                f"{format_figure(last)} at the end",
                "not a number: the learning rate, which grows with the ranks, is too high, or the sums are wrong"
                if last is None
                else "training did not learn; see the checks `allreduce` and `weights`",
            )
    before, last = read_number(finished[0], "loss_before"), read_last_loss(finished[0])
    return good(name, f"loss fell from {format_figure(before)} to {format_figure(last)}")


def check_accuracy(finished: Sequence[Report], min_accuracy: float) -> Check:
    """Every rank's model recognises enough test images."""
    worst = min(finished, key=lambda report: read_number(report, "accuracy") or 0.0)
    lowest = read_number(worst, "accuracy")
    passed = lowest is not None and lowest >= min_accuracy
    return judged(
        "accuracy",
        passed,
        f"expected a test accuracy of at least {min_accuracy:.4f}, seen {format_figure(lowest)}"
        + ("" if passed else f" on {name_process(worst)}"),
        "if all other checks passed, the run was too short for its number of ranks: give it more epochs or a "
        "smaller batch per rank",
    )
