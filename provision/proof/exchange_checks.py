"""Checks of what the ranks exchange: sums and averages of known vectors, and a list of all ranks. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from provision.model.verdict import Check, bad, good
from provision.proof.report_text import format_peers, format_vector, name_process
from provision.proof.reports import Report, read_integer, read_mapping, read_peers, to_vector, vectors_agree

AVERAGE_TOLERANCE = 1e-5
"""Relative: Horovod averages by multiplying a float32 sum by 1/size, which is off by a few units of 6e-8."""


def check_allreduce(finished: Sequence[Report]) -> Check:
    """Sum and average of known vectors, compared with the vectors that the ranks report as their input."""
    name = "allreduce"
    inputs = [to_vector(read_mapping(report, "allreduce").get("input")) for report in finished]
    vectors = [values for values in inputs if values is not None]
    if len(vectors) < len(finished) or len({len(values) for values in vectors}) != 1:
        return bad(
            name,
            "expected vectors of numbers of equal length from all ranks, but some ranks reported none, or another length",
            "the reports are not of one program: do all ranks run the same copy of it?",
        )
    total = [math.fsum(column) for column in zip(*vectors, strict=True)]
    average = [value / len(vectors) for value in total]
    for report in finished:
        results = read_mapping(report, "allreduce")
        for word, key, wanted, tolerance in (
            ("sum", "sum", total, 0.0),
            ("average", "average", average, AVERAGE_TOLERANCE),
            ("predicted sum", "expected", total, 0.0),
        ):
            seen = to_vector(results.get(key))
            if seen is None or not vectors_agree(seen, wanted, tolerance):
                return bad(
                    name,
                    f"expected the {word} over {len(finished)} ranks to be {format_vector(wanted)}, "
                    f"{name_process(report)} got {'no vector' if seen is None else format_vector(seen)}",
                    "the ranks exchanged wrong data, or not with all others; do not use this environment for "
                    "training, whatever its accuracy",
                )
        wrong = results.get("large_wrong")
        if wrong != 0:
            return bad(
                name,
                f"expected no wrong element in a sum of {results.get('large_elements')} numbers, "
                f"{name_process(report)} counted {wrong}",
                "small messages are exchanged correctly and large ones are not: look at the fabric's settings of MPI "
                "(rendezvous, CMA, libfabric, UCX) or at `NCCL_PROTO`",
            )
    return good(
        name, f"sum over {len(finished)} ranks is exactly {format_vector(total)}, average agrees; long vector too"
    )


def check_peers(finished: Sequence[Report]) -> Check:
    """The gathered list of (rank, host, pid) is the same everywhere and names the processes that wrote the reports."""
    name = "peers"
    wanted = sorted((read_integer(r, "rank", -1), str(r.get("host")), read_integer(r, "pid", -1)) for r in finished)
    for report in finished:
        seen = read_peers(report)
        if seen != wanted:
            return bad(
                name,
                f"expected an allgather of {len(wanted)} processes, {format_peers(wanted)}; {name_process(report)} "
                f"gathered {len(seen)}: {format_peers(seen)}",
                "the ranks do not agree on who takes part; see the check `ranks`, and look for reports of another run",
            )
    return good(name, f"allgather named the same {len(wanted)} processes on every rank")
