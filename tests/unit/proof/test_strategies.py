"""The judge of other strategies: a good run passes, and each way in which one goes wrong fails at the check that says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from parts.reports import Report, one_process, workers
from provision.model.verdict import Verdict
from provision.proof.strategies import judge_mirrored, judge_single, judge_workers, stall_of

BAR = 0.9


def failed(verdict: Verdict) -> list[str]:
    return [check.name for check in verdict.failures]


def test_one_process_that_trained_and_went_on_passes_without_horovod() -> None:
    verdict = judge_single([one_process()], min_accuracy=BAR)
    assert verdict.passed
    assert [check.name for check in verdict.checks] == [
        *("reports", "ranks", "nodes", "versions", "restart", "loss", "accuracy")
    ]


@pytest.mark.parametrize(
    ("spoil", "name", "words"),
    [
        (lambda one: one.update(error="OSError: no room", stage="restart"), "reports", "OSError: no room"),
        (lambda one: one.update(size=2), "ranks", "sizes: 2"),
        (lambda one: one["versions"].pop("tensorflow"), "versions", "versions of tensorflow"),
        (lambda one: one["restart"].update(began_at=0), "restart", "at step 188"),
        (lambda one: one["restart"].update(began_sha256="new"), "restart", "with the weights half"),
        (lambda one: one.pop("restart"), "restart", "expected to go on"),
        (lambda one: one.update(loss=[2.0, 2.4]), "loss", "2.4000"),
        (lambda one: one.update(accuracy=0.1), "accuracy", "seen 0.1000"),
    ],
)
def test_a_fault_of_one_process_is_told_by_its_name(spoil: Callable[[Report], object], name: str, words: str) -> None:
    report = one_process()
    spoil(report)
    verdict = judge_single([report], min_accuracy=BAR)
    assert failed(verdict) == [name]
    assert words in verdict.failures[0].message
    assert name == "reports" or "Horovod" not in str(verdict.failures[0].hint)


def test_a_second_process_is_one_too_many() -> None:
    assert failed(judge_single([one_process(), {**one_process(), "pid": 101}], min_accuracy=BAR))[0] == "reports"


def test_no_report_is_no_proof() -> None:
    assert failed(judge_single([], min_accuracy=BAR)) == ["reports"]


def test_a_gpu_that_is_asked_for_must_have_been_used() -> None:
    assert failed(judge_single([one_process()], min_accuracy=BAR, gpus=True)) == ["gpus"]
    with_gpu = {**one_process(), "gpu": {"visible": 1, "used": "/physical_device:GPU:0", "bus_id": "0000:01:00.0"}}
    assert judge_single([with_gpu], min_accuracy=BAR, gpus=True).passed


def replicas() -> Report:
    """The report of a run on two devices without fault, as `provision/proof/programs/mirrored.py` writes it."""
    told = {
        "asked": 2,
        "in_sync": 2,
        "devices": ["/job:localhost/replica:0/task:0/device:CPU:0", "/job:localhost/replica:0/task:0/device:CPU:1"],
        "reduced": {"sum": [3.0, 6.0], "expected": [3.0, 6.0], "large_elements": 1048576, "large_wrong": 0},
        "batch": {"global": 64, "per_replica": 32, "images": [32, 32], "sha256": ["one", "two"]},
        "weights_sha256": ["after", "after"],
    }
    return {**one_process(), "replicas": told}


def test_replicas_that_trained_together_pass() -> None:
    verdict = judge_mirrored([replicas()], replicas=2, min_accuracy=BAR)
    assert verdict.passed
    assert {"replicas", "allreduce", "batch", "weights", "restart"} <= {check.name for check in verdict.checks}


@pytest.mark.parametrize(
    ("spoil", "name", "words"),
    [
        (lambda one: one.update(in_sync=1, devices=one["devices"][:1]), "replicas", "expected 2 replicas"),
        (lambda one: one.update(devices=one["devices"][:1] * 2), "replicas", "seen 1"),
        (lambda one: one["reduced"].update(sum=[1.0, 2.0]), "allreduce", "[3, 6]"),
        (lambda one: one["reduced"].update(large_wrong=7), "allreduce", "seen 7"),
        (lambda one: one.pop("reduced"), "allreduce", "no vector"),
        (lambda one: one["batch"].update(images=[64, 0]), "batch", "64, 0 images"),
        (lambda one: one["batch"].update(sha256=["one", "one"]), "batch", "1 different"),
        (lambda one: one["batch"].update({"global": 32}), "batch", "a batch of 32"),
        (lambda one: one.update(weights_sha256=["after", "apart"]), "weights", "2 different"),
        (lambda one: one.update(weights_sha256=["after"]), "weights", "1 copies"),
    ],
)
def test_a_fault_of_replicas_is_told_by_its_name(spoil: Callable[[Report], object], name: str, words: str) -> None:
    report = replicas()
    spoil(report["replicas"])
    verdict = judge_mirrored([report], replicas=2, min_accuracy=BAR)
    assert failed(verdict) == [name]
    assert words in verdict.failures[0].message


def test_another_number_of_devices_than_asked_for_is_told_first() -> None:
    report = replicas()
    report["replicas"].update(in_sync=1, devices=report["replicas"]["devices"][:1])
    report.update(stage="devices", error="RuntimeError: expected 2 replicas in sync, there are 1")
    verdict = judge_mirrored([report], replicas=2, min_accuracy=BAR)
    assert failed(verdict) == ["replicas", "reports"]
    assert "CUDA_VISIBLE_DEVICES" in str(verdict.failures[0].hint)


def test_replicas_on_the_cpu_are_no_proof_of_gpus() -> None:
    assert failed(judge_mirrored([replicas()], replicas=2, min_accuracy=BAR, gpus=True)) == ["gpus"]


def test_a_report_without_replicas_is_none_of_this_strategy() -> None:
    assert failed(judge_mirrored([one_process()], replicas=2, min_accuracy=BAR)) == [
        *("replicas", "allreduce", "batch", "weights")
    ]


def judged(reports: list[Report], **more: Any) -> Verdict:
    return judge_workers(reports, workers=2, nodes=1, min_accuracy=BAR, **more)


def test_workers_that_trained_together_pass() -> None:
    verdict = judged(workers())
    assert verdict.passed
    told = {check.name: check.message for check in verdict.checks}
    assert {"communication", "allreduce", "peers", "shards", "initial-weights", "broadcast", "weights"} <= set(told)
    assert told["communication"] == "AUTO, addresses by TF_CONFIG, trained by fit"


@pytest.mark.parametrize(
    ("spoil", "name", "words"),
    [
        (lambda one: one["communication"].update(workers=["127.0.0.1:9"]), "communication", "seen 2"),
        (lambda one: one["allreduce"].update(sum=[2.0, 4.0]), "allreduce", "[3, 6]"),
        (lambda one: one.update(peers=[[1, "n1", 101]]), "peers", "gathered 1"),
        (lambda one: one["shard"].update(start=0, stop=10), "shards", "same ones"),
        (lambda one: one.update(weights_sha256_initial="before0"), "initial-weights", "seen 1"),
        (lambda one: one.update(weights_sha256_broadcast="before1"), "broadcast", "seen 2"),
        (lambda one: one.update(weights_sha256="apart", weights_max_difference=0.1), "weights", "0.1 away"),
        (lambda one: one["restart"].update(began_sha256="new"), "restart", "half"),
        (lambda one: one.update(accuracy=0.5), "accuracy", "0.5000"),
    ],
)
def test_a_fault_of_a_worker_is_told_by_its_name(spoil: Callable[[Report], object], name: str, words: str) -> None:
    reports = workers()
    spoil(reports[1])
    verdict = judged(reports)
    assert failed(verdict) == [name]
    assert words in verdict.failures[0].message
    assert "Horovod" not in str(verdict.failures[0].hint)


def test_workers_that_did_not_meet_are_told_what_to_look_at() -> None:
    reports = [{**one_process(), "pid": 100 + number} for number in range(2)]
    verdict = judged(reports)
    assert failed(verdict)[0] == "ranks"
    assert "srun" in str(verdict.failures[0].hint) and "Horovod" not in str(verdict.failures[0].hint)


def test_a_dead_worker_is_no_proof() -> None:
    assert failed(judged(workers()[:1]))[0] == "reports"


def test_a_stall_is_found_in_a_report_and_the_second_try_is_told() -> None:
    stuck, killed = workers()
    stuck.update(stage="training", error="Stall: nothing happened", stalled={"stage": "training", "seconds": 120})
    killed["stage"] = "training"
    told = stall_of([killed, stuck])
    assert told == "AUTO stalled in stage `training`: nothing happened for 120 s"
    assert stall_of(workers()) is None
    again = workers()
    for report in again:
        report["communication"]["asked"] = "RING"
    message = {check.name: check.message for check in judged(again, stalled=told).checks}["communication"]
    assert message == f"second try: RING, addresses by TF_CONFIG, trained by fit; {told}"
