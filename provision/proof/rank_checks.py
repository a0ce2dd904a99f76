"""Checks of the processes: they finished, they are the ranks of one world, on the planned nodes, with one software. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from provision.model.verdict import Check, bad, good, judged
from provision.proof.report_text import list_counts, list_values, name_process, quote_error
from provision.proof.reports import Report, distinct_hosts, is_finished, read_integer, read_mapping
from provision.wording import count

SHUTDOWN_ECHO = "Horovod has been shut down"
"""Text of the error that Horovod raises on all other ranks when one has failed."""


def check_reports(reports: Sequence[Report], ranks: int) -> Check:
    """There is one report for each rank, and each process finished."""
    name = "reports"
    failed = [report for report in reports if not is_finished(report)]
    errors = [report for report in failed if report.get("error")]
    if errors:
        # When one rank dies, Horovod ends the others with an error that has no other information; the cause is in another report.
        report = min(errors, key=lambda report: SHUTDOWN_ECHO in str(report["error"]))
        others = f" (and {len(errors) - 1} more with an error)" if len(errors) > 1 else ""
        return bad(
            name,
            f"expected {count(ranks, 'process', 'processes')} to finish, but {name_process(report)} failed in stage "
            f"`{report.get('stage', 'unknown')}`{others}: {quote_error(report['error'])}",
            "the traceback is in that process's report, field `traceback`",
        )
    if failed:
        stages = list_counts(f"`{report.get('stage', 'unknown')}`" for report in failed)
        return bad(
            name,
            f"expected {count(ranks, 'process', 'processes')} to finish, but {len(failed)} stopped without an error "
            f"message, in stage: {stages}; the first is {name_process(failed[0])}",
            _STAGE_HINTS.get(
                str(failed[0].get("stage")),
                "the process was killed or cut off by the time limit; look at the end of the job's output for the "
                "signal, and at the memory of the node",
            ),
        )
    if len(reports) != ranks:
        fewer = len(reports) < ranks
        return bad(
            name,
            f"expected {ranks} reports, one per rank, found {len(reports)}",
            "some processes never started or died before their first line; look at the launcher's output"
            if fewer
            else "the folder also contains reports of an earlier run, or the launcher started too many processes; "
            "give each run an empty folder",
        )
    return good(name, f"{ranks} of {ranks} processes finished without an error")


_STAGE_HINTS: Mapping[str, str] = {
    "import tensorflow": "an illegal instruction is the usual cause: the TensorFlow build needs a newer processor than "
    "this node's; compare `lscpu` with the target of the arch",
    "hvd.init": "MPI did not start: the launcher and the MPI of the build are not compatible, or the network "
    "between the nodes blocks MPI",
    "allreduce": "the ranks found each other but could not exchange data: look at the fabric's settings of MPI "
    "(libfabric, UCX) or at NCCL with `NCCL_DEBUG=INFO`",
}


def check_ranks(finished: Sequence[Report], ranks: int) -> Check:
    """The processes are ranks 0..N-1 of one world of N."""
    name = "ranks"
    claims = [(read_integer(report, "rank", -1), read_integer(report, "size", -1)) for report in finished]
    if ranks > 1 and all(claim == (0, 1) for claim in claims):
        return bad(
            name,
            f"expected ranks 0..{ranks - 1} of {ranks}, but each of {len(claims)} processes reports "
            "rank 0 of 1: they did not see each other",
            "the launcher and the MPI that Horovod is linked with are not compatible; usual causes: srun without "
            "`--mpi=pmi2` (or `--mpi=pmix`, `cray_shasta`: `srun --mpi=list` shows them), an mpiexec that belongs to "
            "another MPI, or a Horovod built without MPI (`horovodrun --check-build`)",
        )
    if any(size != ranks for _, size in claims):
        sizes = list_counts(str(size) for _, size in claims)
        return bad(
            name,
            f"expected every process to see {count(ranks, 'rank')}, seen sizes: {sizes}",
            "the job was split into several MPI worlds, or the launcher was given another number of ranks; "
            "compare its arguments with the tasks of the job",
        )
    seen = Counter(rank for rank, _ in claims)
    missing = [rank for rank in range(ranks) if rank not in seen]
    repeated = sorted(rank for rank, times in seen.items() if times > 1)
    strange = sorted(rank for rank in seen if not 0 <= rank < ranks)
    if missing or repeated or strange:
        faults = [
            f"{word} {list_values(values)}"
            for word, values in (("missing", missing), ("more than once", repeated), ("out of range", strange))
            if values
        ]
        return bad(
            name,
            f"expected ranks 0..{ranks - 1} once each, seen: {'; '.join(faults)}",
            "a missing rank did not start or failed: see the check `reports`; a repeated rank "
            "belongs to another run or to a second MPI world",
        )
    span = "rank 0" if ranks == 1 else f"ranks 0..{ranks - 1}"
    return good(name, f"{span} of {ranks}, once each")


def check_nodes(finished: Sequence[Report], nodes: int) -> Check:
    """The ranks ran on as many hosts as planned."""
    hosts = distinct_hosts(finished)
    passed = len(hosts) == nodes
    return judged(
        "nodes",
        passed,
        f"expected {nodes} distinct hosts, seen {len(hosts)}: {list_values(hosts)}",
        "compare the job's nodes and tasks per node with the launcher's arguments; a launcher that does not "
        "know the scheduler starts all ranks on the first node",
    )


def check_versions(finished: Sequence[Report], packages: Sequence[str] = ("tensorflow", "horovod")) -> Check:
    """All ranks ran the same software, and it is known which version of `packages`."""
    name = "versions"
    for package in sorted({package for report in finished for package in read_mapping(report, "versions")}):
        seen = {str(read_mapping(report, "versions").get(package)) for report in finished}
        if len(seen) > 1:
            return bad(
                name,
                f"expected one version of {package} on all ranks, seen: {list_values(sorted(seen))}",
                "the nodes do not see the same environment; look for a `PYTHONPATH`, a user site or a module that "
                "only some nodes have",
            )
    versions = read_mapping(finished[0], "versions")
    names = [f"{package} {versions[package]}" for package in packages if package in versions]
    if len(names) < len(packages):
        return bad(
            name,
            f"expected the versions of {' and '.join(packages)}, the reports hold: {list_values(sorted(versions))}",
        )
    return good(name, f"all ranks ran {' and '.join(names)}")
