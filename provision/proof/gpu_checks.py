"""Checks of the GPUs: each rank has its own, and the allreduce runs on it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from provision.model.verdict import Check, bad, good
from provision.proof.report_text import list_values, name_process, quote_error
from provision.proof.reports import Report, read_gpu, read_mapping


def check_missing_gpus(reports: Sequence[Report]) -> list[Check]:
    """A failed check if a process that must use a GPU found none; it is the first check because it is the cause of others."""
    without = [report for report in reports if read_gpu(report).get("missing")]
    if not without:
        return []
    missing = read_gpu(without[0])["missing"]
    return [
        bad(
            "gpus",
            f"{len(without)} of {len(reports)} "
            f"processes found no GPU; the first is {name_process(without[0])}: "
            + (list_values(missing) if isinstance(missing, list) else quote_error(missing)),
            "run the same command on a node of this arch, in a job that requests GPUs (`nvidia-smi -L` lists "
            "them); the finished steps are kept, and the build continues with the proof",
        )
    ]


def check_gpus(finished: Sequence[Report]) -> Check:
    """Every rank has a GPU, and no two ranks share one."""
    name = "gpus"
    without = [report for report in finished if not read_gpu(report).get("used")]
    if without:
        return bad(
            name,
            f"expected a GPU for each of {len(finished)} ranks, {len(without)} had none; the first is "
            f"{name_process(without[0])}",
            "compare the job's GPUs per node and per task with its tasks per node",
        )
    taken = Counter(
        (str(report.get("host")), str(read_gpu(report)["bus_id"]))
        for report in finished
        if read_gpu(report).get("bus_id")
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
        if "GPU" not in str(read_mapping(report, "allreduce").get("device") or "GPU")  # some programs do not report it
    ]
    if elsewhere:
        return bad(
            name,
            f"expected the allreduce to run on the GPU, on {len(elsewhere)} ranks it ran on "
            f"{read_mapping(elsewhere[0], 'allreduce')['device']}; the first is {name_process(elsewhere[0])}",
            "Horovod has no kernel for GPUs: see the check `NCCL built in` of the inspection",
        )
    known = "" if sum(taken.values()) == len(finished) else " (for some of them it is not known which GPU)"
    return good(name, f"{len(finished)} ranks used a GPU each{known}")
