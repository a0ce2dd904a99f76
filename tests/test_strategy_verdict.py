"""The judge of other strategies: a good run passes, and each way in which one goes wrong fails at the check that says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from provision.strategy_verdict import judge_single
from provision.verdict import Verdict

BAR = 0.9
Report = dict[str, Any]


def one_process() -> Report:
    """The report of a run without fault, as `provision/smoke/single.py` writes it."""
    return {
        "schema": 1,
        "stage": "done",
        "error": None,
        "rank": 0,
        "size": 1,
        "host": "n1",
        "pid": 100,
        "versions": {"python": "3.11.7", "tensorflow": "2.15.1", "keras": "2.15.0"},
        "weights_sha256": "after",
        "loss_before": 2.31,
        "loss": [1.0, 0.25],
        "accuracy": 0.95,
        "images_per_second": 1000.0,
        "seconds": 10.0,
        "gpu": {"visible": 0, "used": None, "bus_id": None},
        "restart": {"saved_at": 188, "saved_sha256": "half", "began_at": 188, "began_sha256": "half"},
    }


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
