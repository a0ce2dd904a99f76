"""Checks of what processes and replicas exchange: known sums and averages, a list of all ranks, their addresses. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from provision.model.check import Check, bad, good, skipped
from provision.proof.reports import Run, format_peers, format_vector, list_values, to_vector
from provision.wording import count

AVERAGE_TOLERANCE = 1e-5
"""Relative: Horovod averages by multiplying a float32 sum by 1/size, which is off by a few units of 6e-8."""


def check_allreduce(run: Run) -> Check:
    """Sum and average of known vectors, compared with the vectors that ranks or replicas report as their inputs."""
    name, finished, takers = "allreduce", run.finished, len(run.finished) * run.proof.devices
    who = f"{takers} {'ranks' if run.proof.devices == 1 else 'replicas'}"
    inputs = [to_vector(value) for report in finished for value in report.part("allreduce").values("inputs")]
    vectors = [values for values in inputs if values is not None]
    lengths = sorted({len(values) for values in vectors})
    if len(vectors) != takers or len(lengths) != 1:
        return bad(
            name,
            f"expected a vector of numbers from each of {who}, all of one length, seen {len(vectors)}"
            + (f" of {list_values(lengths)} numbers" if lengths else ""),
            "the reports are not of one program: do all ranks run the same copy of it?",
        )
    total = [math.fsum(column) for column in zip(*vectors, strict=True)]
    average = [value / takers for value in total]
    for report in finished:
        results = report.part("allreduce")
        for word, key, wanted, tolerance in (
            ("sum", "sum", total, 0.0),
            ("average", "average", average, AVERAGE_TOLERANCE),
            ("predicted sum", "expected", total, 0.0),
        ):
            seen = to_vector(results.get(key))
            agrees = partial(math.isclose, rel_tol=tolerance, abs_tol=0.0)
            if seen is None or len(seen) != len(wanted) or not all(map(agrees, seen, wanted)):
                return bad(
                    name,
                    f"expected the {word} over {who} to be {format_vector(wanted)}, "
                    f"{report} got {'no vector' if seen is None else format_vector(seen)}",
                    "the ranks exchanged wrong data, or not with all others; do not use this environment for "
                    "training, whatever its accuracy",
                )
        wrong = results.get("large_wrong")
        if wrong != 0:
            return bad(
                name,
                f"expected no wrong element in a sum of {results.get('large_elements')} numbers, "
                f"{report} counted {wrong}",
                "small messages are exchanged correctly and large ones are not: look at the fabric's settings of MPI "
                "(rendezvous, CMA, libfabric, UCX) or at `NCCL_PROTO`",
            )
    return good(name, f"sum over {who} is exactly {format_vector(total)}, average agrees; long vector too")


def check_peers(run: Run) -> Check:
    """The gathered list of (rank, host, pid) is the same everywhere and names the processes that wrote the reports."""
    name, finished = "peers", run.finished
    wanted = sorted(report.identity for report in finished)
    for report in finished:
        seen = sorted(
            (peer[0], str(peer[1]), peer[2])
            for peer in report.values("peers")
            if isinstance(peer, Sequence) and len(peer) == 3 and isinstance(peer[0], int) and isinstance(peer[2], int)
        )
        if seen != wanted:
            return bad(
                name,
                f"expected an allgather of {len(wanted)} processes, {format_peers(wanted)}; {report} "
                f"gathered {len(seen)}: {format_peers(seen)}",
                "the ranks do not agree on who takes part; see the check `ranks`, and look for reports of another run",
            )
    return good(name, f"allgather named the same {len(wanted)} processes on every rank")


def check_mpi4py(run: Run) -> Check | None:
    """mpi4py has the ranks of Horovod, and sums over them; None if no rank has it."""
    finished = run.finished
    if not any("mpi4py" in report.fields for report in finished):
        return None
    size = len(finished)
    wanted = [size * (size + 1) / 2 * number for number in range(1, 9)]
    for report in finished:
        seen = report.part("mpi4py")
        if not seen.fields:
            return bad("mpi4py", f"other ranks have mpi4py, but {report} does not")
        place = (seen.integer("rank"), seen.integer("size"))
        if place != (report.integer("rank"), report.integer("size")):
            return bad(
                "mpi4py",
                f"mpi4py sees rank {place[0]} of {place[1]}, Horovod in the same process {report}",
                "mpi4py and Horovod are linked with different MPIs: see the check `linked MPI` of the inspection",
            )
        if seen.get("one_thread") is True:
            continue
        if seen.get("threads") is not True:
            return bad(
                "mpi4py",
                f"MPI does not allow several threads on {report}, but Horovod has one that calls MPI beside mpi4py",
                "load an MPI with `MPI_THREAD_MULTIPLE`, or take `mpi4py` out of `[compiled]` in the stack",
            )
        total = to_vector(seen.get("sum"))
        if total != wanted:
            return bad(
                "mpi4py",
                f"expected mpi4py's sum over {size} ranks to be {format_vector(wanted)}, {report} got "
                f"{'no vector' if total is None else format_vector(total)}",
            )
    if finished[0].part("mpi4py").get("one_thread") is True:
        return skipped(
            "mpi4py",
            f"has Horovod's {count(size, 'rank')}; its sum was not tried, because HOROVOD_MPI_THREADS_DISABLE lets one thread "
            "call MPI: a program can use mpi4py or Horovod, not both",
        )
    first = sum(report.part("mpi4py").get("first") is True for report in finished)
    orders = f"imported before Horovod by {count(first, 'rank')}, after it by {size - first}"
    return good("mpi4py", f"has Horovod's {count(size, 'rank')}, its sum is exact; {orders}")


def check_communication(run: Run) -> Check:
    """All workers had one list of addresses and one way to reduce; the message names a first try that stalled."""
    clusters = [report.part("communication") for report in run.finished]
    seen = {
        (str(cluster.get("asked")), str(cluster.get("by")), *map(str, cluster.values("workers")))
        for cluster in clusters
    }
    if len(seen) != 1:
        several = "; ".join(" ".join(cluster) for cluster in sorted(seen)[:4])
        return bad("communication", f"expected one cluster on all workers, seen {len(seen)}: {several}")
    first, trained = clusters[0], run.finished[0].text("trained_by")
    message = f"{first.get('asked')}, addresses from {first.get('by')}"
    message += f" ({first.get('not_by_resolver')})" if first.get("not_by_resolver") else ""
    message += f", trained with {trained}" if trained else ""
    return good("communication", f"second try: {message}; {run.stalled}" if run.stalled else message)
