"""The judges of the strategies without Horovod: a good run passes, and each fault fails the check that names it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from golden_files import Words
from parts.reports import Report, one_process, workers
from provision.model.verdict import Verdict
from provision.proof.without_horovod import judge_mirrored, judge_single, judge_workers, stall_of

MIN_ACCURACY = 0.9
DEVICES = ["/job:localhost/replica:0/task:0/device:CPU:0", "/job:localhost/replica:0/task:0/device:CPU:1"]


def change(**fields: object) -> Callable[[Report], None]:
    """A fault: other values of fields of a report."""
    return lambda report: report.update(fields)


def change_part(part: str, **fields: object) -> Callable[[Report], None]:
    """A fault: other values of fields in a part of a report."""
    return lambda report: report[part].update(fields)


def remove(field: str) -> Callable[[Report], None]:
    """A fault: a report without a field."""

    def remove_field(report: Report) -> None:
        del report[field]

    return remove_field


def failed_names(verdict: Verdict) -> list[str]:
    return [check.name for check in verdict.failures]


def test_one_process_that_trained_and_resumed_passes() -> None:
    verdict = judge_single([one_process()], min_accuracy=MIN_ACCURACY)
    assert verdict.passed
    names = "reports ranks nodes versions restart loss accuracy"
    assert [check.name for check in verdict.checks] == names.split()


@pytest.mark.parametrize(
    ("spoil", "name", "words"),
    [
        (change(error="OSError: no room", stage="restart"), "reports", "OSError: no room"),
        (change(size=2), "ranks", "sizes: 2"),
        (change(versions={"python": "3.11.7"}), "versions", "versions of tensorflow"),
        (change_part("restart", began_at=0), "restart", "at step 188"),
        (change_part("restart", began_sha256="new"), "restart", "with the weights half"),
        (remove("restart"), "restart", "expected to continue"),
        (change(loss=[2.0, 2.4]), "loss", "2.4000"),
        (change(accuracy=0.1), "accuracy", "seen 0.1000"),
    ],
)
def test_a_fault_of_one_process_fails_the_check_that_names_it(
    spoil: Callable[[Report], None], name: str, words: str
) -> None:
    report = one_process()
    spoil(report)
    verdict = judge_single([report], min_accuracy=MIN_ACCURACY)
    assert failed_names(verdict) == [name]
    assert words in verdict.failures[0].message
    assert name == "reports" or "Horovod" not in str(verdict.failures[0].hint)


def test_a_requested_gpu_must_have_been_used() -> None:
    assert failed_names(judge_single([one_process()], min_accuracy=MIN_ACCURACY, gpus=True)) == ["gpus"]
    assert failed_names(judge_mirrored([replicas()], replicas=2, min_accuracy=MIN_ACCURACY, gpus=True)) == ["gpus"]
    with_gpu = {**one_process(), "gpu": {"visible": 1, "used": "/physical_device:GPU:0", "bus_id": "0000:01:00.0"}}
    assert judge_single([with_gpu], min_accuracy=MIN_ACCURACY, gpus=True).passed


def test_too_many_or_too_few_processes_fail() -> None:
    twice = [one_process(), {**one_process(), "pid": 101}]
    assert failed_names(judge_single(twice, min_accuracy=MIN_ACCURACY))[0] == "reports"
    assert failed_names(judge_single([], min_accuracy=MIN_ACCURACY)) == ["reports"]
    assert failed_names(judge_two_workers(workers()[:1]))[0] == "reports"
    alone = judge_mirrored([one_process()], replicas=2, min_accuracy=MIN_ACCURACY)
    assert failed_names(alone) == ["replicas", "allreduce", "batch", "weights"]


def replicas() -> Report:
    """The report of a good run on two devices, as `provision/proof/programs/mirrored.py` writes it."""
    fields = {
        "asked": 2,
        "in_sync": 2,
        "devices": list(DEVICES),
        "reduced": {"sum": [3.0, 6.0], "expected": [3.0, 6.0], "large_elements": 1048576, "large_wrong": 0},
        "batch": {"global": 64, "per_replica": 32, "images": [32, 32], "sha256": ["one", "two"]},
        "weights_sha256": ["after", "after"],
    }
    return {**one_process(), "replicas": fields}


def test_replicas_that_trained_together_pass() -> None:
    verdict = judge_mirrored([replicas()], replicas=2, min_accuracy=MIN_ACCURACY)
    assert verdict.passed
    assert {"replicas", "allreduce", "batch", "weights", "restart"} <= {check.name for check in verdict.checks}


@pytest.mark.parametrize(
    ("spoil", "name", "words"),
    [
        (change(in_sync=1, devices=DEVICES[:1]), "replicas", "expected 2 replicas"),
        (change(devices=DEVICES[:1] * 2), "replicas", "seen 1"),
        (change_part("reduced", sum=[1.0, 2.0]), "allreduce", "[3, 6]"),
        (change_part("reduced", large_wrong=7), "allreduce", "seen 7"),
        (remove("reduced"), "allreduce", "no vector"),
        (change_part("batch", images=[64, 0]), "batch", "64, 0 images"),
        (change_part("batch", sha256=["one", "one"]), "batch", "1 different"),
        (change_part("batch", **{"global": 32}), "batch", "a batch of 32"),
        (change(weights_sha256=["after", "apart"]), "weights", "2 different"),
        (change(weights_sha256=["after"]), "weights", "1 copies"),
    ],
)
def test_a_fault_of_replicas_fails_the_check_that_names_it(
    spoil: Callable[[Report], None], name: str, words: str
) -> None:
    report = replicas()
    spoil(report["replicas"])
    verdict = judge_mirrored([report], replicas=2, min_accuracy=MIN_ACCURACY)
    assert failed_names(verdict) == [name]
    assert words in verdict.failures[0].message


def test_a_wrong_number_of_devices_is_reported_first() -> None:
    report = replicas()
    report["replicas"].update(in_sync=1, devices=report["replicas"]["devices"][:1])
    report.update(stage="devices", error="RuntimeError: expected 2 replicas in sync, but there are 1")
    verdict = judge_mirrored([report], replicas=2, min_accuracy=MIN_ACCURACY)
    assert failed_names(verdict) == ["replicas", "reports"]
    assert "CUDA_VISIBLE_DEVICES" in str(verdict.failures[0].hint)


def judge_two_workers(reports: list[Report], **more: Any) -> Verdict:
    return judge_workers(reports, workers=2, nodes=1, min_accuracy=MIN_ACCURACY, **more)


def test_workers_that_trained_together_pass(words: Words) -> None:
    verdict = judge_two_workers(workers())
    assert verdict.passed
    messages = {check.name: check.message for check in verdict.checks}
    names = {"communication", "allreduce", "peers", "shards", "initial-weights", "broadcast", "weights"}
    assert names <= set(messages)
    words("test", messages["communication"])


@pytest.mark.parametrize(
    ("spoil", "name", "words"),
    [
        (change_part("communication", workers=["127.0.0.1:9"]), "communication", "seen 2"),
        (change_part("allreduce", sum=[2.0, 4.0]), "allreduce", "[3, 6]"),
        (change(peers=[[1, "n1", 101]]), "peers", "gathered 1"),
        (change_part("shard", start=0, stop=10), "shards", "same ones"),
        (change(weights_sha256_initial="before0"), "initial-weights", "seen 1"),
        (change(weights_sha256_broadcast="before1"), "broadcast", "seen 2"),
        (change(weights_sha256="apart", weights_max_difference=0.1), "weights", "0.1 away"),
        (change_part("restart", began_sha256="new"), "restart", "half"),
        (change(accuracy=0.5), "accuracy", "0.5000"),
    ],
)
def test_a_fault_of_a_worker_fails_the_check_that_names_it(
    spoil: Callable[[Report], None], name: str, words: str
) -> None:
    reports = workers()
    spoil(reports[1])
    verdict = judge_two_workers(reports)
    assert failed_names(verdict) == [name]
    assert words in verdict.failures[0].message
    assert "Horovod" not in str(verdict.failures[0].hint)


def test_workers_that_did_not_meet_fail_with_a_hint() -> None:
    reports = [{**one_process(), "pid": 100 + number} for number in range(2)]
    verdict = judge_two_workers(reports)
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
    message = {check.name: check.message for check in judge_two_workers(again, stalled=stall).checks}["communication"]
    assert "RING" in message and message.endswith(f"; {stall}")
    words("test", message)
