"""The judges of proofs, with and without Horovod: a good run passes, and each fault fails the check that names it."""

from __future__ import annotations

import copy
import dataclasses
import functools
import json
from collections.abc import Callable
from typing import Any

import pytest

from golden_files import Words
from parts.reports import Report, ddp_ranks, make_proof, one_process, workers
from provision.model.verdict import Verdict
from provision.proof.strategies import judge, stall_of

Reports = list[dict[str, Any]]
MIN_ACCURACY = 0.9


def good_reports(ranks: int) -> Reports:
    """The reports of a good run, as `provision/proof/programs/horovod_keras.py` writes them."""
    total = float(ranks * (ranks + 1) // 2)
    return [
        {
            **{field: value for field, value in one_process().items() if field != "restart"},
            "rank": rank,
            "size": ranks,
            "local_rank": rank,
            "local_size": ranks,
            "pid": 100 + rank,
            "versions": {"python": "3.11.7", "tensorflow": "2.15.1", "horovod": "0.28.1"},
            "allreduce": {
                "inputs": [[rank + 1.0, 2 * (rank + 1.0)]],
                "expected": [total, 2 * total],
                "sum": [total, 2 * total],
                "average": [total / ranks, 2 * total / ranks * (1 + 1e-7)],
                "large_elements": 1048576,
                "large_wrong": 0,
            },
            "mpi4py": {
                "rank": rank,
                "size": ranks,
                "first": rank % 2 == 1,
                "threads": True,
                "sum": [total * number for number in range(1, 9)],
            },
            "peers": [[other, "n1", 100 + other] for other in range(ranks)],
            "shard": {"start": rank * 10, "stop": rank * 10 + 10, "sha256": f"shard{rank}"},
            "train_images": 10,
            "weights_sha256_initial": f"before{rank}",
            "weights_max_difference": 0.0,
            "images_per_second": 1000.0 + rank,
            "seconds": 10.0 + rank,
            "loaded_modules": [],
        }
        for rank in range(ranks)
    ]


def with_gpus(reports: Reports) -> Reports:
    """The same run on GPUs: each rank has one, and the allreduce runs on it."""
    for rank, report in enumerate(reports):
        report["gpu"] = {"visible": 4, "used": f"/physical_device:GPU:{rank}", "bus_id": f"0000:0{rank}:00.0"}
        report["allreduce"]["device"] = f"/job:localhost/replica:0/task:0/device:GPU:{rank}"
    return reports


def without_gpu(reports: Reports) -> Reports:
    """The reports of ranks that needed a GPU on a machine without one, as `proof/programs/rank.py` writes them."""
    missing = ["no driver (libcuda.so.1: cannot open shared object file)", "no device files /dev/nvidia0 and so on"]
    for report in reports:
        report["gpu"] = {"visible": 0, "used": None, "bus_id": None, "missing": missing}
        report.update(stage="devices", error=f"RuntimeError: this rank has no GPU: {'; '.join(missing)}")
    return reports


def judged(
    reports: Reports, ranks: int = 2, *, program: str = "horovod_keras", min_accuracy: float = MIN_ACCURACY, **more: Any
) -> Verdict:
    """The verdict on these reports."""
    return judge(make_proof(program, ranks, **more), reports, min_accuracy)


def test_gpus_are_judged_if_they_are_used_or_requested() -> None:
    assert judged(good_reports(2)).passed
    assert "gpus" not in [check.name for check in judged(good_reports(2)).checks]
    # For example, a program that was started without `--gpu`.
    assert failed_names(judged(good_reports(2), gpus=True)) == ["gpus"]
    for gpus in (True, False):
        verdict = judged(with_gpus(good_reports(2)), gpus=gpus)
        assert (verdict.passed, verdict.figures.gpus) == (True, 2)
    reports = with_gpus(good_reports(2))
    reports[1]["allreduce"]["device"] = "/job:localhost/replica:0/task:0/device:CPU:0"
    verdict = judged(reports, gpus=True)
    assert failed_names(verdict) == ["gpus"] and "device:CPU:0" in verdict.failures[0].message


def test_missing_gpus_fail_with_the_evidence_of_the_ranks(words: Words) -> None:
    first = judged(without_gpu(good_reports(2)), gpus=True).failures[0]
    assert first.name == "gpus" and "no driver (libcuda.so.1" in first.message
    words("test", f"{first.message}\n{first.hint}")


def unconnected_processes(ranks: int) -> Reports:
    """The reports of processes that did not see each other: each is a good run of one rank."""
    reports = []
    for number in range(ranks):
        report = good_reports(1)[0]
        report["pid"] = 100 + number
        report["peers"] = [[0, "n1", 100 + number]]
        reports.append(report)
    return reports


def failed_names(verdict: Verdict) -> list[str]:
    return [check.name for check in verdict.failures]


def change(rank: int, /, **fields: object) -> Callable[[Reports], None]:
    """A fault: other values of fields in the report of one rank."""
    return lambda reports: reports[rank].update(fields)


def part_of(report: Report, place: str) -> Report:
    """A part of a report; `a/b` is a part of a part."""
    return functools.reduce(lambda part, name: part[name], filter(None, place.split("/")), report)


def change_part(rank: int, place: str, /, **fields: object) -> Callable[[Reports], None]:
    """A fault: other values in a part of the report of one rank."""
    return lambda reports: part_of(reports[rank], place).update(fields)


def remove(rank: int, place: str) -> Callable[[Reports], None]:
    """A fault: the report of one rank without this part."""
    parts, _, last = place.rpartition("/")
    return lambda reports: part_of(reports[rank], parts).__delitem__(last)


def drop_report(rank: int) -> Callable[[Reports], None]:
    """A fault: the report of one rank is missing."""

    def spoil_reports(reports: Reports) -> None:
        del reports[rank]

    return spoil_reports


def change_every(**fields: object) -> Callable[[Reports], None]:
    """A fault: other values of fields in the reports of all ranks."""

    def spoil_reports(reports: Reports) -> None:
        for report in reports:
            report.update(copy.deepcopy(fields))

    return spoil_reports


def use_gpus(*bus_ids: str | None) -> Callable[[Reports], None]:
    """Each rank reports the GPU with its bus ID, or no GPU."""

    def spoil_reports(reports: Reports) -> None:
        for report, bus_id in zip(reports, bus_ids, strict=True):
            report["gpu"] = {"visible": 2, "used": bus_id and "GPU:0", "bus_id": bus_id}

    return spoil_reports


@pytest.mark.parametrize("ranks", [1, 2, 7])
def test_a_good_run_passes(ranks: int) -> None:
    """In whichever order the reports come, and with an accuracy at the bar."""
    verdict = judged(good_reports(ranks), ranks, min_accuracy=0.95)
    assert verdict.passed, verdict.failures
    assert verdict == judged(good_reports(ranks)[::-1], ranks, min_accuracy=0.95)
    assert all(check.hint is None for check in verdict.checks)
    figures = verdict.figures
    assert (figures.ranks, figures.accuracy, figures.loss_before, figures.loss_last) == (ranks, 0.95, 2.31, 0.25)
    assert (figures.images_per_second, figures.seconds, figures.hosts) == (1000.0, 10.0 + ranks - 1, ("n1",))
    assert (figures.weights_sha256, figures.versions["tensorflow"]) == ("after", "2.15.1")
    assert not Verdict(checks=(), figures=figures).passed


def test_processes_that_did_not_see_each_other_fail(words: Words) -> None:
    verdict = judged(unconnected_processes(4), 4)
    first = verdict.failures[0]
    assert first.name == "ranks"
    assert "--mpi=pmi2" in str(first.hint)
    words("test", f"{first.message}\n{first.hint}")
    # The good figures of each process must not hide it: the sums, the shards and the first weights fail too.
    assert {"allreduce", "peers", "shards", "initial-weights"} <= set(failed_names(verdict))


def test_a_job_that_split_into_two_groups_of_ranks_fails(words: Words) -> None:
    first = judged(good_reports(2) + good_reports(2), 4).failures[0]
    assert first.name == "ranks"
    words("test", first.message)


DEVICES = ["/job:localhost/replica:0/task:0/device:CPU:0", "/job:localhost/replica:0/task:0/device:CPU:1"]


def replicas() -> Report:
    """The report of a good run on two devices, as `provision/proof/programs/mirrored.py` writes it."""
    fields = {
        "asked": 2,
        "in_sync": 2,
        "devices": list(DEVICES),
        "batch": {"global": 64, "per_replica": 32, "images": [32, 32], "sha256": ["one", "two"]},
        "weights_sha256": ["after", "after"],
    }
    both = workers()[0]["allreduce"]
    return {**one_process(), "replicas": fields, "allreduce": {**both, "inputs": [[1.0, 2.0], [2.0, 4.0]]}}


GOOD = {
    "horovod": good_reports(3),
    "single": [one_process()],
    "mirrored": [replicas()],
    "workers": workers(),
    "ddp": ddp_ranks(),
}
JUDGES: dict[str, Callable[[Reports], Verdict]] = {
    "horovod": functools.partial(judged, ranks=3),
    "single": functools.partial(judged, program="single"),
    "mirrored": functools.partial(judged, program="mirrored"),
    "workers": functools.partial(judged, program="multiworker"),
    "ddp": functools.partial(judged, program="ddp"),
}
FEW_VERSIONS, OTHER_SHARD = {"python": "3.11.7"}, {"start": 0, "stop": 10, "sha256": "other"}
IMPORT = "import tensorflow"


# By what is wrong; those of other strategies than Horovod are about checks of their own.
FAULTS: dict[str, tuple[str, Callable[[Reports], None]]] = {
    "missing report": ("reports", drop_report(1)),
    "missing rank": ("ranks", drop_report(1)),
    "duplicate rank": ("ranks", change(2, rank=1)),
    "rank out of range": ("ranks", change(2, rank=3)),
    "another size": ("ranks", change(2, size=4)),
    "rank is text": ("ranks", change(2, rank="2")),
    "error": ("reports", change(1, error="ImportError: libcudart.so.12", stage=IMPORT)),
    "stall": ("reports", change(1, stage="training")),
    "mixed versions": ("versions", change_part(1, "versions", tensorflow="2.14.0")),
    "no versions": ("versions", change_every(versions=FEW_VERSIONS)),
    "wrong sum": ("allreduce", change_part(1, "allreduce", sum=[6.0, 13.0])),
    "short sum": ("allreduce", change_part(1, "allreduce", sum=[6.0])),
    "sum is no number": ("allreduce", change_part(1, "allreduce", sum=[6.0, float("nan")])),
    "wrong average": ("allreduce", change_part(1, "allreduce", average=[2.0, 4.1])),
    "wrong expectation": ("allreduce", change_part(1, "allreduce", expected=[3.0, 6.0])),
    "large messages": ("allreduce", change_part(1, "allreduce", large_wrong=17)),
    "no allreduce": ("allreduce", change(1, allreduce=None)),
    "short input": ("allreduce", change_part(1, "allreduce", inputs=[[2.0]])),
    "another world of mpi4py": ("mpi4py", change_part(1, "mpi4py", rank=0, size=1)),
    "one thread for mpi4py": ("mpi4py", change_part(1, "mpi4py", threads=False, sum=None)),
    "wrong sum of mpi4py": ("mpi4py", change_part(2, "mpi4py", sum=[6.0, 12.0])),
    "no sum of mpi4py": ("mpi4py", change_part(0, "mpi4py", sum=None)),
    "no mpi4py on one rank": ("mpi4py", remove(1, "mpi4py")),
    "wrong peers": ("peers", change(1, peers=[[0, "n1", 100]])),
    "no peers": ("peers", change(1, peers="none")),
    "shards overlap": ("shards", change(1, shard=OTHER_SHARD)),
    "equal shards": ("shards", change_part(1, "shard", sha256="shard0")),
    "uneven shards": ("shards", change_part(2, "shard", stop=29)),
    "no shard": ("shards", change(1, shard={})),
    "empty shards": ("shards", lambda reports: [one["shard"].update(stop=one["shard"]["start"]) for one in reports]),
    "no first weights on one rank": ("initial-weights", change(1, weights_sha256_initial=None)),
    "equal first weights": ("initial-weights", change_every(weights_sha256_initial="same")),
    "weights differ": ("weights", change(1, weights_sha256="x", weights_max_difference=0.25)),
    "no weights on one rank": ("weights", change(1, weights_sha256=None)),
    "no weights": ("weights", change_every(weights_sha256=None)),
    "weights are a list": ("weights", change_every(weights_sha256=["a"])),
    "loss is NaN": ("loss", change_every(loss=[1.0, float("nan")])),
    "loss is null": ("loss", change_every(loss=[1.0, None])),
    "no loss": ("loss", change_every(loss=[])),
    "infinite first loss": ("loss", change_every(loss_before=float("inf"))),
    "loss did not fall": ("loss", change_every(loss=[1.0, 2.31])),
    "too low": ("accuracy", change(1, accuracy=0.8999)),
    "no accuracy": ("accuracy", change(1, accuracy=None)),
    "shared GPU": ("gpus", use_gpus("1:0", "1:0", "2:0")),
    "one rank without GPU": ("gpus", use_gpus("1:0", "2:0", None)),
    "single: too low": ("accuracy", change(0, accuracy=0.1)),
    "mirrored: one replica": ("replicas", change_part(0, "replicas", in_sync=1, devices=DEVICES[:1])),
    "mirrored: one device twice": ("replicas", change_part(0, "replicas", devices=DEVICES[:1] * 2)),
    "mirrored: wrong sum": ("allreduce", change_part(0, "allreduce", sum=[1.0, 2.0])),
    "mirrored: large messages": ("allreduce", change_part(0, "allreduce", large_wrong=7)),
    "mirrored: wrong average": ("allreduce", change_part(0, "allreduce", average=[3.0, 6.0])),
    "mirrored: input of one": ("allreduce", change_part(0, "allreduce", inputs=[[3.0, 6.0]])),
    "mirrored: no allreduce": ("allreduce", remove(0, "allreduce")),
    "mirrored: uneven batch": ("batch", change_part(0, "replicas/batch", images=[64, 0])),
    "mirrored: equal batches": ("batch", change_part(0, "replicas/batch", sha256=["one", "one"])),
    "mirrored: small batch": ("batch", change_part(0, "replicas/batch", **{"global": 32})),
    "mirrored: weights differ": ("weights", change_part(0, "replicas", weights_sha256=["after", "apart"])),
    "mirrored: weights of one": ("weights", change_part(0, "replicas", weights_sha256=["after"])),
    "workers: another cluster": ("communication", change_part(1, "communication", workers=["127.0.0.1:9"])),
    "workers: wrong sum": ("allreduce", change_part(1, "allreduce", sum=[2.0, 4.0])),
    "workers: no broadcast": ("broadcast", change(1, weights_sha256_broadcast="before1")),
    "workers: broadcast unknown": ("broadcast", change_every(weights_sha256_broadcast=None)),
    "ddp: no averages": ("weights", change(1, weights_sha256="apart", weights_max_difference=0.25)),
    "ddp: no broadcast": ("broadcast", change(1, weights_sha256_broadcast="before1")),
    "ddp: another address": ("communication", change_part(1, "communication", workers=["10.0.0.1:9"])),
    "ddp: images of another rank": ("shards", change_part(1, "shard", shared=3)),
    "ddp: no set_epoch": ("shards", change_part(1, "shard", orders=["first1", "first1"])),
    "ddp: no version": ("versions", change_every(versions=FEW_VERSIONS)),
    "ddp: wrong sum": ("allreduce", change_part(1, "allreduce", sum=[2.0, 4.0])),
    "ddp: another file": ("restart", change_part(1, "restart", began_sha256="other")),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_faulty_run_fails_with_the_reason(name: str, words: Words) -> None:
    """A fault of a part of the run fails one check."""
    kind = name.rpartition(": ")[0] or "horovod"
    check, spoil = FAULTS[name]
    reports = copy.deepcopy(GOOD[kind])
    spoil(reports)
    verdict = JUDGES[kind](reports)
    assert check in failed_names(verdict)
    assert len(verdict.failures) == 1 or (kind, check) in (("horovod", "reports"), ("horovod", "ranks"))
    (failure,) = (one for one in verdict.failures if one.name == check)
    words("test", failure.message)
    assert kind == "horovod" or check == "reports" or "Horovod" not in str(failure.hint)
    json.dumps(verdict.to_dict(), allow_nan=False)


def test_ranks_on_fewer_nodes_than_planned_fail(words: Words) -> None:
    assert judged(good_reports(2), nodes=1).passed
    (failure,) = judged(good_reports(2), nodes=2).failures
    assert failure.name == "nodes"
    words("test", failure.message)


def test_reports_of_an_earlier_run_fail(words: Words) -> None:
    """And so does a run without reports."""
    old = good_reports(2)
    for report in old:
        report["pid"] += 50
    verdict = judged(good_reports(2) + old)
    assert failed_names(verdict)[0] == "reports"
    words("test", verdict.failures[0].message)
    nothing = judged([])
    assert failed_names(nothing) == ["reports"]
    assert (nothing.figures.ranks, nothing.figures.accuracy) == (0, None)


def test_a_process_that_died_in_the_import_hints_at_the_processor(words: Words) -> None:
    reports: Reports = [{"schema": 1, "stage": IMPORT, "error": None, "host": "n1", "pid": 7}]
    (failure,) = judged(reports, 1).failures
    assert "illegal instruction" in str(failure.hint)
    words("test", f"{failure.message}\n{failure.hint}")


def test_empty_reports_fail_every_check_without_an_exception() -> None:
    verdict = judged([{"stage": "done"}, {"stage": "done"}])
    assert {check.name for check in verdict.checks} - set(failed_names(verdict)) == {"reports"}


def test_the_first_error_is_quoted_not_the_errors_it_caused(words: Words) -> None:
    """In one line, also if it is long."""
    reports = good_reports(3)
    for report in reports:
        report.update(stage="training", error="UnknownError: Horovod has been shut down. This was caused by …")
    reports[1]["error"] = "ResourceExhaustedError: out of memory"
    message = judged(reports, 3).failures[0].message
    assert message.endswith(": ResourceExhaustedError: out of memory")
    words("test", message)
    reports[1]["error"] = "RuntimeError: first\nsecond " + "x" * 5000
    message = judged(reports, 3).failures[0].message
    assert "RuntimeError: first second" in message and "\n" not in message and len(message) < 500


@pytest.mark.parametrize(
    "echo",
    [
        "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by peer [10.0.0.1]:4321",
        "RuntimeError: Connection reset by peer",
        "RuntimeError: workers did not appear within 20 s: 1",
        "Stall: nothing happened for 20 s in stage `training`",
    ],
)
@pytest.mark.parametrize("error", ["MemoryError: too large", None])
def test_the_rank_that_died_is_named_not_those_that_waited_for_it(echo: str, error: str | None) -> None:
    """With its error, or without one if it was killed."""
    waiting, dead = ddp_ranks()
    waiting.update(stage="training", error=echo)
    dead.update(stage="second training", error=error)
    failure = judged([waiting, dead], program="ddp").failures[0]
    assert failure.name == "reports"
    assert (f"rank 1 of 2 (n1, pid 101){'' if error is None else ' failed'}") in failure.message
    assert failure.message.index("`second training`") < failure.message.index(error or echo)
    assert echo in judged([waiting, waiting], program="ddp").failures[0].message


@pytest.mark.parametrize("reports", [good_reports(2), unconnected_processes(2), []])
def test_a_verdict_can_be_written_and_read_as_json(reports: Reports) -> None:
    assert Verdict.from_dict(json.loads(json.dumps(judged(reports).to_dict()))) == judged(reports)


@pytest.mark.parametrize(("field", "value"), [("passed", True), ("schema", 2)])
def test_an_edited_verdict_is_refused(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=field):
        Verdict.from_dict({**judged(unconnected_processes(2)).to_dict(), field: value})


def continued_reports(ranks: int) -> Reports:
    """The reports of `provision/proof/programs/horovod_graph.py`: a second session continued from rank 0's checkpoint."""
    reports = good_reports(ranks)
    for report in reports:
        report["restart"] = {"saved_at": 96, "saved_sha256": "half", "began_at": 96, "began_sha256": "half"}
    return reports


@pytest.mark.parametrize(
    ("rank", "changed"),
    [
        (0, {"began_at": 0}),
        (1, {"began_sha256": "other"}),
        (0, {"saved_at": None}),
        (1, None),
        (0, {}),
        (0, {"saved_sha256": None, "began_sha256": None}),
    ],
)
def test_a_restart_from_elsewhere_fails(rank: int, changed: dict[str, object] | None, words: Words) -> None:
    """Or from nowhere: a rank does not report it. One that continued where it stopped passes."""
    reports = continued_reports(2)
    if changed is None:
        del reports[rank]["restart"]
    else:
        reports[rank]["restart"].update(changed)
    verdict = judged(reports, program="horovod_graph")
    assert failed_names(verdict) == ([] if changed == {} else ["restart"])
    words("test", next(check.message for check in verdict.checks if check.name == "restart"))


# Without Horovod


def test_one_process_that_trained_and_resumed_passes() -> None:
    verdict = judged([one_process()], program="single")
    assert verdict.passed
    names = "reports ranks nodes versions restart loss accuracy"
    assert [check.name for check in verdict.checks] == names.split()


def test_a_requested_gpu_must_have_been_used() -> None:
    assert failed_names(judged([one_process()], program="single", gpus=True)) == ["gpus"]
    assert failed_names(judged([replicas()], program="mirrored", gpus=True)) == ["gpus"]
    with_gpu = {**one_process(), "gpu": {"visible": 1, "used": "/physical_device:GPU:0", "bus_id": "0000:01:00.0"}}
    assert judged([with_gpu], program="single", gpus=True).passed


def test_too_many_or_too_few_processes_fail() -> None:
    twice = [one_process(), {**one_process(), "pid": 101}]
    assert failed_names(judged(twice, program="single"))[0] == "reports"
    assert [failed_names(judged([], program=name)) for name in ("single", "mirrored")] == [["reports"]] * 2
    assert failed_names(judged(workers()[:1], program="multiworker"))[0] == "reports"
    alone = judged([one_process()], program="mirrored")
    assert failed_names(alone) == ["replicas", "allreduce", "batch", "weights"]


def test_replicas_that_trained_together_pass() -> None:
    verdict = judged([replicas()], program="mirrored")
    assert verdict.passed
    assert {"replicas", "allreduce", "batch", "weights", "restart"} <= {check.name for check in verdict.checks}


def test_a_wrong_number_of_devices_is_reported_first() -> None:
    report = replicas()
    report["replicas"].update(in_sync=1, devices=report["replicas"]["devices"][:1])
    report.update(stage="devices", error="RuntimeError: expected 2 replicas in sync, but there are 1")
    verdict = judged([report], program="mirrored")
    assert failed_names(verdict) == ["replicas", "reports"]
    assert "CUDA_VISIBLE_DEVICES" in str(verdict.failures[0].hint)
    killed = {**replicas(), "stage": "training", "error": "MemoryError"}
    assert failed_names(judged([killed], program="mirrored")) == ["reports"]


def test_ranks_of_ddp_that_trained_together_pass() -> None:
    verdict = judged(ddp_ranks(), program="ddp")
    assert verdict.passed, verdict.failures
    assert {check.name: check.message for check in verdict.checks}["versions"] == "all ranks ran torch 2.9.1"


def test_workers_that_trained_together_pass(words: Words) -> None:
    verdict = judged(workers(), program="multiworker")
    assert verdict.passed
    messages = {check.name: check.message for check in verdict.checks}
    names = {"communication", "allreduce", "peers", "shards", "initial-weights", "broadcast", "weights"}
    assert names <= set(messages)
    words("test", messages["communication"])


def test_workers_that_did_not_meet_fail_with_a_hint() -> None:
    reports = [{**one_process(), "pid": 100 + number} for number in range(2)]
    verdict = judged(reports, program="multiworker")
    assert failed_names(verdict)[0] == "ranks"
    assert "srun" in str(verdict.failures[0].hint) and "Horovod" not in str(verdict.failures[0].hint)


def test_a_stall_is_read_from_a_report_and_the_second_try_names_it(words: Words) -> None:
    stuck, killed = workers()
    stuck.update(stage="training", error="Stall: nothing happened", stalled={"stage": "training", "seconds": 120})
    killed["stage"] = "training"
    stall = stall_of([killed, stuck])
    assert stall is not None and stall_of(workers()) is None
    again = workers()
    for report in again:
        report["communication"]["asked"] = "RING"
    message = {
        check.name: check.message for check in judge(make_proof("multiworker"), again, MIN_ACCURACY, stall).checks
    }["communication"]
    assert "RING" in message and message.endswith(f"; {stall}")
    words("test", message)


def test_a_process_that_reads_the_plain_files_fails_a_proof_through_the_image() -> None:
    proof = dataclasses.replace(make_proof("horovod_keras"), deliver="/prefix/.provision/images/provision-deliver")
    reports = good_reports(proof.processes)
    for report in reports:
        report["delivered"] = "abc"
    assert judge(proof, reports, MIN_ACCURACY).passed
    reports[1]["delivered"] = None
    (failure,) = judge(proof, reports, MIN_ACCURACY).failures
    assert (failure.name, failure.message.partition(";")[0]) == (
        "delivery",
        f"1 of {len(reports)} processes read the plain files",
    )


def test_a_sum_of_mpi4py_that_one_thread_forbids_is_skipped_and_its_place_is_not(words: Words) -> None:
    reports = good_reports(3)
    for rank, report in enumerate(reports):
        report["mpi4py"] = {"rank": rank, "size": 3, "first": False, "one_thread": True, "threads": False, "sum": None}
    verdict = judged(reports, 3)
    (check,) = [check for check in verdict.checks if check.name == "mpi4py"]
    assert (verdict.passed, check.skipped) == (True, True)
    words("test", check.message)
    reports[1]["mpi4py"]["rank"] = 0
    assert failed_names(judged(reports, 3)) == ["mpi4py"]
