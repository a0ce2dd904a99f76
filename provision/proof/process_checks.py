"""Checks of the processes: they finished, are the ranks of one world, on the planned nodes, GPUs and software. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from provision.model.check import Check, bad, good, judged
from provision.proof.reports import Report, Run, distinct_hosts, list_counts, list_values, quote_error
from provision.wording import count

ECHOES = (
    *("Horovod has been shut down", "workers did not appear within", "Stall: nothing happened for"),
    *("Connection closed by peer", "Connection reset by peer", "Timed out waiting", "Socket Timeout", "NCCL error"),
)
"""Texts of the errors that Horovod, torch and our programs raise on all other ranks when one has failed."""

ILLEGAL_INSTRUCTION = (
    "an illegal instruction is the usual cause: the build of the framework needs a newer processor than this node's; compare "
    "`lscpu` with the target of the arch"
)
STAGE_HINTS: Mapping[str, str] = {
    **dict.fromkeys(("import tensorflow", "import torch"), ILLEGAL_INSTRUCTION),
    "hvd.init": "MPI did not start: the launcher and the MPI of the build are not compatible, or the network "
    "between the nodes blocks MPI",
    "allreduce": "the ranks found each other but could not exchange data: look at the fabric's settings of MPI "
    "(libfabric, UCX) or at NCCL with `NCCL_DEBUG=INFO`",
}
"""Why a process was killed in a stage."""

DEVICES_HINT = (
    "compare the GPUs that the job requests with `CUDA_VISIBLE_DEVICES` and `nvidia-smi -L` on the node; TensorFlow "
    "ignores a GPU that it cannot use, without a message"
)


def check_missing_gpus(run: Run) -> Check | None:
    """A failed check if a process that must use a GPU found none; it is the first check because it is the cause of others."""
    without = [report for report in run.reports if report.part("gpu").get("missing")]
    if not without:
        return None
    missing = without[0].part("gpu").get("missing")
    return bad(
        "gpus",
        f"{len(without)} of {len(run.reports)} processes found no GPU; the first is {without[0]}: "
        + (list_values(missing) if isinstance(missing, list) else quote_error(missing)),
        "run the same command on a node of this arch, in a job that requests GPUs (`nvidia-smi -L` lists "
        "them); the finished steps are kept, and the build continues with the proof",
    )


def check_replicas(run: Run) -> Check | None:
    """There are as many replicas in sync as requested devices, each on its own device.

    It comes before `reports`, because a program that gets too few ends with an error.
    """
    reported = [report.part("replicas") for report in run.reports if "replicas" in report.fields]
    if not reported and not run.finished:
        return None
    replicas, wanted = reported[0] if reported else Report({}), run.proof.devices
    devices, in_sync = sorted(set(map(str, replicas.values("devices")))), replicas.integer("in_sync")
    seen = len(devices) if in_sync == wanted else in_sync
    return judged(
        "replicas",
        seen == wanted,
        f"{wanted} replicas in sync: {list_values(devices)}"
        if seen == wanted
        else f"expected {wanted} replicas in sync, each on its own device, seen {seen}: {list_values(devices)}",
        DEVICES_HINT,
    )


def check_reports(run: Run) -> Check:
    """There is one report for each rank, and each process finished."""
    name, reports, ranks = "reports", run.reports, run.proof.processes
    failed = [report for report in reports if not report.finished]
    errors = [report for report in failed if report.get("error")]
    # When one rank dies, the others end with an error that has no other information; the cause is in another report.
    causes = [report for report in errors if not any(echo in str(report.get("error")) for echo in ECHOES)]
    if causes or (errors and len(errors) == len(failed)):
        report = (causes or errors)[0]
        others = f" (and {len(errors) - 1} more with an error)" if len(errors) > 1 else ""
        return bad(
            name,
            f"expected {count(ranks, 'process', 'processes')} to finish, but {report} failed in stage "
            f"`{report.get('stage', 'unknown')}`{others}: {quote_error(report.get('error'))}",
            "the traceback is in that process's report, field `traceback`",
        )
    failed = [report for report in failed if report not in errors]
    if failed:
        stages = list_counts(f"`{report.get('stage', 'unknown')}`" for report in failed)
        return bad(
            name,
            f"expected {count(ranks, 'process', 'processes')} to finish, but {len(failed)} stopped without an error "
            f"message, in stage: {stages}; the first is {failed[0]}"
            + (f"; another process then reported: {quote_error(errors[0].get('error'))}" if errors else ""),
            STAGE_HINTS.get(
                str(failed[0].get("stage")),
                "the process was killed or cut off by the time limit; look at the end of the job's output for the "
                "signal, and at the memory of the node",
            ),
        )
    if len(reports) != ranks:
        return bad(
            name,
            f"expected {ranks} reports, one per rank, found {len(reports)}",
            "some processes never started or died before their first line; look at the launcher's output"
            if len(reports) < ranks
            else "the folder also contains reports of an earlier run, or the launcher started too many processes; "
            "give each run an empty folder",
        )
    return good(name, f"{ranks} of {ranks} processes finished without an error")


def check_ranks(run: Run) -> Check:
    """The processes are ranks 0..N-1 of one world of N."""
    name, ranks = "ranks", run.proof.processes
    claims = [(report.integer("rank"), report.integer("size")) for report in run.finished]
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
    faults = {
        "missing": [rank for rank in range(ranks) if rank not in seen],
        "more than once": sorted(rank for rank, times in seen.items() if times > 1),
        "out of range": sorted(rank for rank in seen if not 0 <= rank < ranks),
    }
    if any(faults.values()):
        return bad(
            name,
            f"expected ranks 0..{ranks - 1} once each, seen: "
            + "; ".join(f"{word} {list_values(values)}" for word, values in faults.items() if values),
            "a missing rank did not start or failed: see the check `reports`; a repeated rank "
            "belongs to another run or to a second MPI world",
        )
    span = "rank 0" if ranks == 1 else f"ranks 0..{ranks - 1}"
    return good(name, f"{span} of {ranks}, once each")


def check_nodes(run: Run) -> Check:
    """The ranks ran on as many hosts as planned."""
    hosts = distinct_hosts(run.finished)
    return judged(
        "nodes",
        len(hosts) == run.proof.nodes,
        f"expected {run.proof.nodes} distinct hosts, seen {len(hosts)}: {list_values(hosts)}",
        "compare the job's nodes and tasks per node with the launcher's arguments; a launcher that does not "
        "know the scheduler starts all ranks on the first node",
    )


def check_versions(run: Run) -> Check:
    """All ranks ran the same software, and it is known which version of the packages that count."""
    name, of_ranks = "versions", [report.part("versions").fields for report in run.finished]
    for package in sorted({package for versions in of_ranks for package in versions}):
        seen = {str(versions.get(package)) for versions in of_ranks}
        if len(seen) > 1:
            return bad(
                name,
                f"expected one version of {package} on all ranks, seen: {list_values(sorted(seen))}",
                "the nodes do not see the same environment; look for a `PYTHONPATH`, a user site or a module that "
                "only some nodes have",
            )
    names = [f"{package} {of_ranks[0][package]}" for package in run.packages if package in of_ranks[0]]
    complete = len(names) == len(run.packages)
    return judged(
        name,
        complete,
        f"all ranks ran {' and '.join(names)}"
        if complete
        else f"expected the versions of {' and '.join(run.packages)}, the reports hold: {list_values(sorted(of_ranks[0]))}",
    )


def check_gpus(run: Run) -> Check | None:
    """Every rank has a GPU, no two ranks share one, and the allreduce runs on it; no check if none is planned or used."""
    name, finished = "gpus", run.finished
    without = [report for report in finished if not report.part("gpu").get("used")]
    if run.proof.gpu is None and len(without) == len(finished):
        return None
    if without:
        return bad(
            name,
            f"expected a GPU for each of {len(finished)} ranks, {len(without)} had none; the first is {without[0]}",
            "compare the job's GPUs per node and per task with its tasks per node",
        )
    taken = Counter(
        (str(report.get("host")), str(report.part("gpu").get("bus_id")))
        for report in finished
        if report.part("gpu").get("bus_id")
    )
    shared = sorted(gpu for gpu, ranks in taken.items() if ranks > 1)
    if shared:
        host, bus_id = shared[0]
        return bad(
            name,
            f"expected one GPU per rank, but {taken[shared[0]]} ranks used the GPU {bus_id} on {host}",
            "start at most one rank per GPU, and let each rank see either all GPUs of its node or its own one",
        )
    elsewhere = [
        report
        for report in finished
        if "GPU" not in str(report.part("allreduce").get("device") or "GPU")  # some programs do not report it
    ]
    if elsewhere:
        return bad(
            name,
            f"expected the allreduce to run on the GPU, on {len(elsewhere)} ranks it ran on "
            f"{elsewhere[0].part('allreduce').get('device')}; the first is {elsewhere[0]}",
            "Horovod without NCCL has no kernel for GPUs (see the check `NCCL built in` of the inspection); DDP needs `nccl`",
        )
    known = "" if sum(taken.values()) == len(finished) else " (for some of them it is not known which GPU)"
    return good(name, f"{len(finished)} ranks used a GPU each{known}")


def check_gpus_of_replicas(run: Run) -> Check | None:
    """All replicas were on GPUs; no check if none is planned."""
    if run.proof.gpu is None:
        return None
    devices = [str(device) for device in run.finished[0].part("replicas").values("devices")]
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


def check_delivery(run: Run) -> Check | None:
    """Whether every process had the image of the environment; None if the files are delivered."""
    if run.proof.deliver is None:
        return None
    plain = [report for report in run.finished if not report.get("delivered")]
    return judged(
        "delivery",
        not plain,
        f"{len(plain)} of {len(run.finished)} processes read the plain files; the log of the proof says why"
        if plain
        else "every process had the mounted image",
        hint='install `squashfuse` on the nodes, or set `deliver = "files"` for the arch',
    )
