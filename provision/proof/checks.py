"""The checks of a proof, one function each: the reports of N processes in, an answer with its reason out.

Pure. Reports are written by a training program of `provision/proof/programs/` inside the environment on trial, so they
are treated as testimony: any field may be missing or odd, and a report is never asked whether its own run was good. What
one process says is compared with what the others say.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

from provision.model.verdict import Check, Figures
from provision.proof import reports as read
from provision.proof.reports import Report

AVERAGE_TOLERANCE = 1e-5
"""Relative: Horovod averages by multiplying a float32 sum by 1/size, which is off by a few units of 6e-8."""

SHUTDOWN_ECHO = "Horovod has been shut down"
"""Text of the error that Horovod raises on all other ranks when one has failed."""


def check_reports(reports: Sequence[Report], ranks: int) -> Check:
    """As many reports as ranks, each of a process that came to its end."""
    name = "reports"
    failed = [report for report in reports if not read.is_finished(report)]
    errors = [report for report in failed if report.get("error")]
    if errors:
        # When one rank dies, Horovod ends the others with an error that says no more than that; the cause is elsewhere.
        report = min(errors, key=lambda report: SHUTDOWN_ECHO in str(report["error"]))
        others = f" (and {len(errors) - 1} more with an error)" if len(errors) > 1 else ""
        return Check(
            name=name,
            passed=False,
            message=f"expected {ranks} processes to finish, but {read.who(report)} failed in stage "
            f"`{report.get('stage', 'unknown')}`{others}: {read.quote(report['error'])}",
            hint="the traceback is in that process's report, field `traceback`",
        )
    if failed:
        stages = read.counted(f"`{report.get('stage', 'unknown')}`" for report in failed)
        return Check(
            name=name,
            passed=False,
            message=f"expected {ranks} processes to finish, but {len(failed)} stopped without a word, last seen in "
            f"stage: {stages}; first of them {read.who(failed[0])}",
            hint=_STAGE_HINTS.get(
                str(failed[0].get("stage")),
                "the process was killed or cut off by the time limit; look at the end of the job's output for the "
                "signal, and at the memory of the node",
            ),
        )
    if len(reports) != ranks:
        fewer = len(reports) < ranks
        return Check(
            name=name,
            passed=False,
            message=f"expected {ranks} reports, one per rank, found {len(reports)}",
            hint="some processes never started or died before their first line; look at the launcher's output"
            if fewer
            else "reports of an earlier run lie in the same directory, or more processes were started than asked for; "
            "give each run an empty directory",
        )
    return Check(name=name, passed=True, message=f"{ranks} of {ranks} processes finished without an error")


_STAGE_HINTS: Mapping[str, str] = {
    "import tensorflow": "an illegal instruction is the usual cause: the TensorFlow build wants a newer processor than "
    "this node's; compare `lscpu` with the target of the arch",
    "hvd.init": "MPI did not come up: the launcher and the MPI of the build do not fit, or the network between the "
    "nodes is closed to it",
    "allreduce": "the ranks found each other but could not exchange data: look at the fabric's settings of MPI "
    "(libfabric, UCX) or at NCCL with `NCCL_DEBUG=INFO`",
}


def check_ranks(finished: Sequence[Report], ranks: int) -> Check:
    """The processes are ranks 0..N-1 of one world of N."""
    name = "ranks"
    claims = [(read.whole(report, "rank", -1), read.whole(report, "size", -1)) for report in finished]
    if ranks > 1 and all(claim == (0, 1) for claim in claims):
        return Check(
            name=name,
            passed=False,
            message=f"expected ranks 0..{ranks - 1} of {ranks}, but each of {len(claims)} processes believes it is "
            "rank 0 of 1: they did not see each other",
            hint="the launcher and the MPI that Horovod is linked with do not fit; usual causes: srun without "
            "`--mpi=pmi2` (or `--mpi=pmix`, `cray_shasta`: `srun --mpi=list` shows them), an mpiexec that belongs to "
            "another MPI, or a Horovod built without MPI (`horovodrun --check-build`)",
        )
    if any(size != ranks for _, size in claims):
        sizes = read.counted(str(size) for _, size in claims)
        return Check(
            name=name,
            passed=False,
            message=f"expected every process to see {ranks} ranks, seen sizes: {sizes}",
            hint="the job was split into several MPI worlds, or the launcher was given another number of ranks; "
            "compare its arguments with the tasks of the job",
        )
    seen = Counter(rank for rank, _ in claims)
    missing = [rank for rank in range(ranks) if rank not in seen]
    repeated = sorted(rank for rank, times in seen.items() if times > 1)
    strange = sorted(rank for rank in seen if not 0 <= rank < ranks)
    if missing or repeated or strange:
        faults = [
            f"{word} {read.listed(values)}"
            for word, values in (("missing", missing), ("more than once", repeated), ("out of range", strange))
            if values
        ]
        return Check(
            name=name,
            passed=False,
            message=f"expected ranks 0..{ranks - 1} once each, seen: {'; '.join(faults)}",
            hint="a rank that is missing never started or failed, see the check `reports`; one that is there twice "
            "belongs to another run or to a second MPI world",
        )
    span = "rank 0" if ranks == 1 else f"ranks 0..{ranks - 1}"
    return Check(name=name, passed=True, message=f"{span} of {ranks}, once each")


def check_nodes(finished: Sequence[Report], nodes: int) -> Check:
    """The ranks ran on as many hosts as the caller demands."""
    hosts = read.hosts(finished)
    passed = len(hosts) == nodes
    return Check(
        name="nodes",
        passed=passed,
        message=f"expected {nodes} distinct hosts, seen {len(hosts)}: {read.listed(hosts)}",
        hint=None
        if passed
        else "compare the job's nodes and tasks per node with the launcher's arguments; a launcher that does not "
        "know the scheduler starts all ranks on the first node",
    )


def check_versions(finished: Sequence[Report], packages: Sequence[str] = ("tensorflow", "horovod")) -> Check:
    """All ranks ran the same software, and it is known which version of `packages`."""
    name = "versions"
    for package in sorted({package for report in finished for package in read.mapping(report, "versions")}):
        seen = {str(read.mapping(report, "versions").get(package)) for report in finished}
        if len(seen) > 1:
            return Check(
                name=name,
                passed=False,
                message=f"expected one version of {package} on all ranks, seen: {read.listed(sorted(seen))}",
                hint="the nodes do not see the same environment; look for a `PYTHONPATH`, a user site or a module that "
                "only some nodes have",
            )
    versions = read.mapping(finished[0], "versions")
    names = [f"{package} {versions[package]}" for package in packages if package in versions]
    if len(names) < len(packages):
        return Check(
            name=name,
            passed=False,
            message=f"expected the versions of {' and '.join(packages)}, the reports hold: {read.listed(sorted(versions))}",
        )
    return Check(name=name, passed=True, message=f"all ranks ran {' and '.join(names)}")


def check_wanted_gpus(reports: Sequence[Report]) -> list[Check]:
    """A failed check where a process that had to use a GPU found none; it comes first, for the others die of it too."""
    without = [report for report in reports if read.gpu(report).get("missing")]
    if not without:
        return []
    lacks = read.gpu(without[0])["missing"]
    return [
        Check(
            name="gpus",
            passed=False,
            message=f"for want of a GPU: {len(without)} of {len(reports)} "
            f"processes found none; first of them {read.who(without[0])}: "
            + (read.listed(lacks) if isinstance(lacks, list) else read.quote(lacks)),
            hint="run the same command on a node of this arch, in a job that asks for its GPUs (`nvidia-smi -L` lists "
            "them there); what is built is kept, and the proof is made there",
        )
    ]


def check_gpus(finished: Sequence[Report]) -> Check:
    """Where GPUs are used, every rank has one, and no two ranks share one."""
    name = "gpus"
    without = [report for report in finished if not read.gpu(report).get("used")]
    if without:
        return Check(
            name=name,
            passed=False,
            message=f"expected a GPU for each of {len(finished)} ranks, {len(without)} had none; first of them "
            f"{read.who(without[0])}",
            hint="compare the job's GPUs per node and per task with its tasks per node",
        )
    taken = Counter(
        (str(report.get("host")), str(read.gpu(report)["bus_id"]))
        for report in finished
        if read.gpu(report).get("bus_id")
    )
    shared = sorted(place for place, ranks in taken.items() if ranks > 1)
    if shared:
        host, bus_id = shared[0]
        return Check(
            name=name,
            passed=False,
            message=f"expected one GPU per rank, but {taken[shared[0]]} ranks used the GPU {bus_id} on {host}",
            hint="start at most one rank per GPU, and let each rank see either all GPUs of its node or its own one",
        )
    elsewhere = [
        report
        for report in finished
        if "GPU" not in str(read.mapping(report, "allreduce").get("device") or "GPU")  # not every program says it
    ]
    if elsewhere:
        return Check(
            name=name,
            passed=False,
            message=f"expected the allreduce to run on the GPU, on {len(elsewhere)} ranks it ran on "
            f"{read.mapping(elsewhere[0], 'allreduce')['device']}; first of them {read.who(elsewhere[0])}",
            hint="Horovod has no kernel for GPUs: see the check `NCCL built in` of the inspection",
        )
    known = "" if sum(taken.values()) == len(finished) else " (which GPU, is not known for all of them)"
    return Check(name=name, passed=True, message=f"{len(finished)} ranks used a GPU each{known}")


def check_allreduce(finished: Sequence[Report]) -> Check:
    """Sum and average of known vectors, against the vectors that the ranks say they put in."""
    name = "allreduce"
    inputs = [read.vector(read.mapping(report, "allreduce").get("input")) for report in finished]
    whole = [values for values in inputs if values is not None]
    if len(whole) < len(finished) or len({len(values) for values in whole}) != 1:
        return Check(
            name=name,
            passed=False,
            message="expected one vector of numbers of equal length from each rank, seen less",
            hint="the reports are not of one program: do all ranks run the same copy of it?",
        )
    total = [math.fsum(column) for column in zip(*whole, strict=True)]
    average = [value / len(whole) for value in total]
    for report in finished:
        results = read.mapping(report, "allreduce")
        for word, key, wanted, tolerance in (
            ("sum", "sum", total, 0.0),
            ("average", "average", average, AVERAGE_TOLERANCE),
            ("sum, as the program foretold it,", "expected", total, 0.0),
        ):
            seen = read.vector(results.get(key))
            if seen is None or not read.agree(seen, wanted, tolerance):
                return Check(
                    name=name,
                    passed=False,
                    message=f"expected the {word} over {len(finished)} ranks to be {read.numbers(wanted)}, {read.who(report)} "
                    f"got {'no vector' if seen is None else read.numbers(seen)}",
                    hint="the ranks exchanged wrong data, or not with all others; do not use this environment for "
                    "training, whatever its accuracy",
                )
        wrong = results.get("large_wrong")
        if wrong != 0:
            return Check(
                name=name,
                passed=False,
                message=f"expected no wrong element in a sum of {results.get('large_elements')} numbers, "
                f"{read.who(report)} counted {wrong}",
                hint="small messages pass and large ones do not: look at the fabric's settings of MPI (rendezvous, "
                "CMA, libfabric, UCX) or at `NCCL_PROTO`",
            )
    return Check(
        name=name,
        passed=True,
        message=f"sum over {len(finished)} ranks is exactly {read.numbers(total)}, average agrees; long vector too",
    )


def check_peers(finished: Sequence[Report]) -> Check:
    """The gathered list of (rank, host, pid) is the same everywhere and names the very processes that reported."""
    name = "peers"
    wanted = sorted((read.whole(r, "rank", -1), str(r.get("host")), read.whole(r, "pid", -1)) for r in finished)
    for report in finished:
        seen = read.peers(report)
        if seen != wanted:
            return Check(
                name=name,
                passed=False,
                message=f"expected an allgather of {len(wanted)} processes, {read.peer_words(wanted)}; {read.who(report)} "
                f"gathered {len(seen)}: {read.peer_words(seen)}",
                hint="the ranks do not agree on who takes part; see the check `ranks`, and look for reports of "
                "another run",
            )
    return Check(name=name, passed=True, message=f"allgather named the same {len(wanted)} processes on every rank")


def check_shards(finished: Sequence[Report]) -> Check:
    """No training image belongs to two ranks, and all ranks have equally many."""
    name = "shards"
    slices: list[tuple[int, int, Report]] = []
    for report in finished:
        shard = read.mapping(report, "shard")
        start, stop = read.whole(shard, "start", -1), read.whole(shard, "stop", -1)
        if start < 0 or stop <= start or not shard.get("sha256"):
            return Check(
                name=name,
                passed=False,
                message=f"expected a slice of the training images, {read.who(report)} reports {dict(shard)!r}",
            )
        slices.append((start, stop, report))
    slices.sort(key=lambda item: item[:2])
    for (_, stop, left), (start, _, right) in pairwise(slices):
        if start < stop or read.mapping(left, "shard")["sha256"] == read.mapping(right, "shard")["sha256"]:
            return Check(
                name=name,
                passed=False,
                message=f"expected disjoint shards of the training images, but {read.who(left)} and {read.who(right)} trained "
                "on the same ones",
                hint="each of them took itself for the same rank; see the check `ranks`",
            )
    lengths = sorted({stop - start for start, stop, _ in slices})
    if len(lengths) > 1:
        return Check(
            name=name, passed=False, message=f"expected shards of equal size, seen from {lengths[0]} to {lengths[-1]}"
        )
    return Check(name=name, passed=True, message=f"{len(slices)} disjoint shards of {lengths[0]} images")


def check_initial_weights(finished: Sequence[Report]) -> Check:
    """The ranks started from different weights; otherwise equal weights at the end prove no broadcast."""
    seen = {read.text_of(report, "weights_sha256_initial") for report in finished}
    passed = len(seen) == len(finished) and None not in seen
    return Check(
        name="initial-weights",
        passed=passed,
        message=f"expected {len(finished)} different sets of weights before the broadcast, seen {len(seen - {None})}",
        hint=None
        if passed
        else "equal weights at the end prove nothing then; the ranks seed by their number, so see the check `ranks`",
    )


def check_restart(finished: Sequence[Report]) -> Check:
    """The second session went on on every rank at the step and with the weights that rank 0 had saved."""
    root = min(finished, key=lambda report: read.whole(report, "rank", -1))
    saved = read.mapping(root, "restart")
    for report in finished:
        began = read.mapping(report, "restart")
        for what, seen, wanted in (
            ("at step", read.whole(began, "began_at", -1), read.whole(saved, "saved_at", -2)),
            ("with the weights", str(began.get("began_sha256"))[:12], str(saved.get("saved_sha256"))[:12]),
        ):
            if seen != wanted:
                return Check(
                    name="restart",
                    passed=False,
                    message=f"expected to go on {what} {wanted} of rank 0's checkpoint, {read.who(report)} began {what} {seen}",
                    hint="rank 0 could not read its checkpoint, or the broadcast that follows did not reach all ranks",
                )
    message = f"went on at step {read.whole(saved, 'saved_at', -1)} with the weights of rank 0's checkpoint"
    return Check(name="restart", passed=True, message=message)


def check_weights(finished: Sequence[Report]) -> Check:
    """After training all ranks hold the same weights, to the last bit."""
    name = "weights"
    seen = Counter(read.text_of(report, "weights_sha256") or "none" for report in finished)
    if len(seen) == 1 and "none" not in seen:
        whose = "all ranks hold" if len(finished) > 1 else "the rank holds"
        return Check(name=name, passed=True, message=f"{whose} the weights {next(iter(seen))[:12]}")
    apart = [d for d in (read.number(report, "weights_max_difference") for report in finished) if d is not None]
    far = f", up to {max(apart):.2g} away from rank 0's" if apart else ""
    return Check(
        name=name,
        passed=False,
        message=f"expected identical weights on {len(finished)} ranks after training, seen {len(seen)} different sets"
        f"{far}: {read.listed([digest[:12] for digest in sorted(seen)])}",
        hint="differences near 1e-7 are rounding: ranks on unlike processors or with unlike builds; larger ones mean "
        "that the weights were not broadcast or the gradients not summed",
    )


def check_loss(finished: Sequence[Report]) -> Check:
    """Training did something, everywhere: the last loss is a number and below the one before training."""
    name = "loss"
    for report in finished:
        before, last = read.number(report, "loss_before"), read.last_loss(report)
        if before is None or last is None or not last < before:
            return Check(
                name=name,
                passed=False,
                message=f"expected the loss to fall, {read.who(report)} has {read.decimal(before)} before training and "
                f"{read.decimal(last)} at its end",
                hint="not a number: the learning rate, which grows with the ranks, is too high, or the sums are wrong"
                if last is None
                else "training did not learn; see the checks `allreduce` and `weights`",
            )
    before, last = read.number(finished[0], "loss_before"), read.last_loss(finished[0])
    return Check(name=name, passed=True, message=f"loss fell from {read.decimal(before)} to {read.decimal(last)}")


def check_accuracy(finished: Sequence[Report], min_accuracy: float) -> Check:
    """Every rank's model recognises enough test images."""
    worst = min(finished, key=lambda report: read.number(report, "accuracy") or 0.0)
    lowest = read.number(worst, "accuracy")
    passed = lowest is not None and lowest >= min_accuracy
    return Check(
        name="accuracy",
        passed=passed,
        message=f"expected a test accuracy of at least {min_accuracy:.4f}, seen {read.decimal(lowest)}"
        + ("" if passed else f" on {read.who(worst)}"),
        hint=None
        if passed
        else "if all other checks passed, the run was too short for its number of ranks: give it more epochs or a "
        "smaller batch per rank",
    )


def figures_of(finished: Sequence[Report]) -> Figures:
    """Gather the figures, at their worst where ranks differ."""
    digests = {read.text_of(report, "weights_sha256") for report in finished}
    digest = next(iter(digests)) if len(digests) == 1 else None
    return Figures(
        ranks=len(finished),
        hosts=read.hosts(finished),
        gpus=sum(1 for report in finished if read.gpu(report).get("used")),
        accuracy=read.worst(min, (read.number(report, "accuracy") for report in finished)),
        loss_before=read.worst(max, (read.number(report, "loss_before") for report in finished)),
        loss_last=read.worst(max, (read.last_loss(report) for report in finished)),
        images_per_second=read.worst(min, (read.number(report, "images_per_second") for report in finished)),
        seconds=read.worst(max, (read.number(report, "seconds") for report in finished)),
        versions={str(k): str(v) for k, v in read.mapping(finished[0], "versions").items()} if finished else {},
        weights_sha256=digest,
    )
