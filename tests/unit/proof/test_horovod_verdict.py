"""The judge of Horovod's ranks: a good run passes, and each known fault of a run fails the check that names it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from golden_files import Words
from provision.model.verdict import Verdict
from provision.proof.horovod import judge

Reports = list[dict[str, Any]]
MIN_ACCURACY = 0.9


def good_reports(ranks: int) -> Reports:
    """The reports of a good run, as `provision/proof/programs/horovod_keras.py` writes them."""
    total = float(ranks * (ranks + 1) // 2)
    return [
        {
            "schema": 1,
            "stage": "done",
            "error": None,
            "rank": rank,
            "size": ranks,
            "local_rank": rank,
            "local_size": ranks,
            "host": "n1",
            "pid": 100 + rank,
            "versions": {"python": "3.11.7", "tensorflow": "2.15.1", "horovod": "0.28.1"},
            "allreduce": {
                "input": [rank + 1.0, 2 * (rank + 1.0)],
                "expected": [total, 2 * total],
                "sum": [total, 2 * total],
                "average": [total / ranks, 2 * total / ranks * (1 + 1e-7)],
                "large_elements": 1048576,
                "large_wrong": 0,
            },
            "peers": [[other, "n1", 100 + other] for other in range(ranks)],
            "shard": {"start": rank * 10, "stop": rank * 10 + 10, "sha256": f"shard{rank}"},
            "train_images": 10,
            "weights_sha256_initial": f"before{rank}",
            "weights_sha256": "after",
            "weights_max_difference": 0.0,
            "loss_before": 2.31,
            "loss": [1.0, 0.25],
            "accuracy": 0.95,
            "images_per_second": 1000.0 + rank,
            "seconds": 10.0 + rank,
            "gpu": {"visible": 0, "used": None, "bus_id": None},
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


def test_a_run_on_gpus_passes_if_gpus_are_requested() -> None:
    verdict = judge(with_gpus(good_reports(2)), ranks=2, min_accuracy=MIN_ACCURACY, gpus=True)
    assert verdict.passed
    assert verdict.figures.gpus == 2


def test_missing_gpus_fail_with_the_evidence_of_the_ranks(words: Words) -> None:
    verdict = judge(without_gpu(good_reports(2)), ranks=2, min_accuracy=MIN_ACCURACY, gpus=True)
    assert not verdict.passed
    first = verdict.failures[0]
    assert first.name == "gpus"
    assert "2 of 2" in first.message
    assert "no driver (libcuda.so.1" in first.message and "no device files" in first.message
    assert first.hint and "nvidia-smi -L" in first.hint
    words("test", f"{first.message}\n{first.hint}")


def test_a_run_on_the_cpu_fails_if_gpus_are_requested() -> None:
    # For example, a program that was started without `--gpu`.
    assert failed_names(judge(good_reports(2), ranks=2, min_accuracy=MIN_ACCURACY, gpus=True)) == ["gpus"]
    assert judge(good_reports(2), ranks=2, min_accuracy=MIN_ACCURACY).passed


def test_an_allreduce_on_the_cpu_fails_if_gpus_are_requested() -> None:
    reports = with_gpus(good_reports(2))
    reports[1]["allreduce"]["device"] = "/job:localhost/replica:0/task:0/device:CPU:0"
    verdict = judge(reports, ranks=2, min_accuracy=MIN_ACCURACY, gpus=True)
    assert failed_names(verdict) == ["gpus"]
    assert "device:CPU:0" in verdict.failures[0].message


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


def change_part(rank: int, field: str, /, **fields: object) -> Callable[[Reports], None]:
    """A fault: other values in a part of the report of one rank."""
    return lambda reports: reports[rank][field].update(fields)


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


@pytest.mark.parametrize("ranks", [1, 2, 3, 7, 64])
def test_a_good_run_passes(ranks: int) -> None:
    verdict = judge(good_reports(ranks), ranks=ranks, min_accuracy=MIN_ACCURACY)

    assert verdict.passed, verdict.failures
    assert all(check.hint is None for check in verdict.checks)
    assert verdict.figures.ranks == ranks
    assert verdict.figures.accuracy == 0.95
    assert (verdict.figures.loss_before, verdict.figures.loss_last) == (2.31, 0.25)
    assert verdict.figures.images_per_second == 1000.0
    assert verdict.figures.seconds == 10.0 + ranks - 1
    assert verdict.figures.hosts == ("n1",)
    assert verdict.figures.weights_sha256 == "after"
    assert verdict.figures.versions["tensorflow"] == "2.15.1"


def test_the_order_of_reports_does_not_matter() -> None:
    reports = good_reports(4)

    assert judge(reports, ranks=4, min_accuracy=MIN_ACCURACY) == judge(
        reports[::-1], ranks=4, min_accuracy=MIN_ACCURACY
    )


def test_processes_that_did_not_see_each_other_fail(words: Words) -> None:
    verdict = judge(unconnected_processes(4), ranks=4, min_accuracy=MIN_ACCURACY)

    assert not verdict.passed
    first = verdict.failures[0]
    assert first.name == "ranks"
    assert "4 processes" in first.message and "rank 0 of 1" in first.message
    assert first.hint is not None
    assert "--mpi=pmi2" in first.hint
    words("test", f"{first.message}\n{first.hint}")
    # The good figures of each process must not hide it: the sums, the shards and the first weights fail too.
    assert {"allreduce", "peers", "shards", "initial-weights"} <= set(failed_names(verdict))


def test_a_job_that_split_into_two_groups_of_ranks_fails(words: Words) -> None:
    reports = good_reports(2) + good_reports(2)

    first = judge(reports, ranks=4, min_accuracy=MIN_ACCURACY).failures[0]

    assert first.name == "ranks"
    assert "4 ranks" in first.message and "2 (4 times)" in first.message
    words("test", first.message)


@pytest.mark.parametrize(
    ("spoil", "check", "figures"),
    [
        pytest.param(drop_report(1), "reports", "3 reports", id="missing report"),
        pytest.param(drop_report(1), "ranks", "missing 1", id="missing rank"),
        pytest.param(change(2, rank=1), "ranks", "missing 2", id="duplicate rank"),
        pytest.param(change(2, rank=3), "ranks", "missing 2", id="rank out of range"),
        pytest.param(change(2, size=4), "ranks", "3 (2 times), 4 (1 time)", id="another size"),
        pytest.param(change(2, rank="2"), "ranks", "missing 2", id="rank is text"),
        pytest.param(
            change(1, error="ImportError: libcudart.so.12", stage="import tensorflow"),
            "reports",
            "`import tensorflow`: ImportError: libcudart.so.12",
            id="error",
        ),
        pytest.param(
            change(1, stage="training"),
            "reports",
            "`training`",
            id="stall",
        ),
        pytest.param(change_part(1, "versions", tensorflow="2.14.0"), "versions", "tensorflow", id="mixed versions"),
        pytest.param(change_every(versions={"python": "3.11.7"}), "versions", "python", id="no versions"),
        pytest.param(change_part(1, "allreduce", sum=[6.0, 13.0]), "allreduce", "[6, 12], rank 1 of 3", id="wrong sum"),
        pytest.param(change_part(1, "allreduce", sum=[6.0]), "allreduce", "got [6]", id="short sum"),
        pytest.param(change_part(1, "allreduce", sum=[6.0, float("nan")]), "allreduce", "", id="sum is not a number"),
        pytest.param(change_part(1, "allreduce", average=[2.0, 4.1]), "allreduce", "average", id="wrong average"),
        pytest.param(change_part(1, "allreduce", expected=[3.0, 6.0]), "allreduce", "", id="wrong expectation"),
        pytest.param(change_part(1, "allreduce", large_wrong=17), "allreduce", " 17", id="large messages"),
        pytest.param(change(1, allreduce=None), "allreduce", "", id="no allreduce"),
        pytest.param(change(1, peers=[[0, "n1", 100]]), "peers", "1: rank 0 (n1, pid 100)", id="wrong peers"),
        pytest.param(change(1, peers="none"), "peers", " 0", id="no peers"),
        pytest.param(change(1, shard={"start": 0, "stop": 10, "sha256": "other"}), "shards", "", id="shards overlap"),
        pytest.param(change_part(1, "shard", sha256="shard0"), "shards", "", id="equal shards"),
        pytest.param(change_part(2, "shard", stop=29), "shards", "from 9 to 10", id="uneven shards"),
        pytest.param(change(1, shard={}), "shards", "rank 1 of 3 (n1, pid 101) reports {}", id="no shard"),
        pytest.param(change_every(weights_sha256_initial="same"), "initial-weights", "3 ", id="equal first weights"),
        pytest.param(
            change(1, weights_sha256="other", weights_max_difference=0.25),
            "weights",
            " 0.25 ",
            id="weights differ",
        ),
        pytest.param(change(1, weights_sha256=None), "weights", " 2 ", id="no weights on one rank"),
        pytest.param(change_every(weights_sha256=None), "weights", " 1 ", id="no weights"),
        pytest.param(change_every(weights_sha256=["a"]), "weights", "weights", id="weights are a list"),
        pytest.param(change_every(loss=[1.0, float("nan")]), "loss", "2.3100 ", id="loss is NaN"),
        pytest.param(change_every(loss=[1.0, None]), "loss", "", id="loss is null"),
        pytest.param(change_every(loss=[]), "loss", "", id="no loss"),
        pytest.param(change_every(loss_before=float("inf")), "loss", "", id="infinite first loss"),
        pytest.param(change_every(loss=[1.0, 2.31]), "loss", "2.3100 ", id="loss did not fall"),
        pytest.param(change(1, accuracy=0.8999), "accuracy", "0.8999 on rank 1", id="too low"),
        pytest.param(change(1, accuracy=None), "accuracy", "on rank 1", id="no accuracy"),
        pytest.param(use_gpus("1:0", "1:0", "2:0"), "gpus", "1:0 on n1", id="shared GPU"),
        pytest.param(use_gpus("1:0", "2:0", None), "gpus", "1 ", id="one rank without GPU"),
    ],
)
def test_a_faulty_run_fails_with_the_reason(
    spoil: Callable[[Reports], None], check: str, figures: str, words: Words
) -> None:
    reports = good_reports(3)
    spoil(reports)

    verdict = judge(reports, ranks=3, min_accuracy=MIN_ACCURACY)

    assert not verdict.passed
    assert check in failed_names(verdict)
    message = next(failure.message for failure in verdict.failures if failure.name == check)
    assert figures in message
    words("test", message)
    json.dumps(verdict.to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    "spoil",
    [
        change(1, weights_sha256="other"),
        change(1, accuracy=0.5),
        change(1, loss=[1.0, 9.0]),
        change_part(1, "allreduce", large_wrong=1),
        change_part(1, "versions", horovod="0.28.0"),
        use_gpus("1:0", "1:0"),
    ],
)
def test_one_fault_fails_one_check(spoil: Callable[[Reports], None]) -> None:
    reports = good_reports(2)
    spoil(reports)

    assert len(judge(reports, ranks=2, min_accuracy=MIN_ACCURACY).failures) == 1


def test_accuracy_at_the_bar_passes() -> None:
    assert judge(good_reports(2), ranks=2, min_accuracy=0.95).passed


def test_gpus_are_judged_only_if_used() -> None:
    reports = good_reports(2)
    assert "gpus" not in [check.name for check in judge(reports, ranks=2, min_accuracy=MIN_ACCURACY).checks]

    use_gpus("1:0", "2:0")(reports)
    verdict = judge(reports, ranks=2, min_accuracy=MIN_ACCURACY)
    assert verdict.passed
    assert verdict.figures.gpus == 2


@pytest.mark.parametrize(("nodes", "passed"), [(None, True), (1, True), (2, False)])
def test_the_number_of_hosts_is_checked_only_on_request(nodes: int | None, passed: bool, words: Words) -> None:
    verdict = judge(good_reports(2), ranks=2, min_accuracy=MIN_ACCURACY, nodes=nodes)

    assert verdict.passed is passed
    if not passed:
        assert failed_names(verdict) == ["nodes"]
        assert verdict.failures[0].message.endswith(" 1: n1")
        words("test", verdict.failures[0].message)


def test_reports_of_an_earlier_run_fail(words: Words) -> None:
    old = good_reports(2)
    for report in old:
        report["pid"] += 50

    verdict = judge(good_reports(2) + old, ranks=2, min_accuracy=MIN_ACCURACY)

    assert failed_names(verdict)[0] == "reports"
    assert "2 reports" in verdict.failures[0].message and " 4" in verdict.failures[0].message
    words("test", verdict.failures[0].message)


def test_no_reports_at_all_fail() -> None:
    verdict = judge([], ranks=2, min_accuracy=MIN_ACCURACY)

    assert failed_names(verdict) == ["reports"]
    assert verdict.figures.ranks == 0
    assert verdict.figures.accuracy is None


def test_a_process_that_died_in_the_import_hints_at_the_processor(words: Words) -> None:
    reports: Reports = [{"schema": 1, "stage": "import tensorflow", "error": None, "host": "n1", "pid": 7}]

    (failure,) = judge(reports, ranks=1, min_accuracy=MIN_ACCURACY).failures

    assert "(n1, pid 7)" in failure.message
    assert failure.hint is not None
    assert "illegal instruction" in failure.hint
    words("test", f"{failure.message}\n{failure.hint}")


def test_empty_reports_fail_every_check_without_an_exception() -> None:
    verdict = judge([{"stage": "done"}, {"stage": "done"}], ranks=2, min_accuracy=MIN_ACCURACY)

    assert not verdict.passed
    assert {check.name for check in verdict.checks} - set(failed_names(verdict)) == {"reports"}


def test_the_first_error_is_quoted_not_the_errors_it_caused(words: Words) -> None:
    reports = good_reports(3)
    for report in reports:
        report.update(stage="training", error="UnknownError: Horovod has been shut down. This was caused by …")
    reports[1]["error"] = "ResourceExhaustedError: out of memory"

    message = judge(reports, ranks=3, min_accuracy=MIN_ACCURACY).failures[0].message

    assert "rank 1 of 3" in message
    assert " 2 more " in message and message.endswith(": ResourceExhaustedError: out of memory")
    words("test", message)


def test_a_long_error_is_shortened_to_one_line() -> None:
    reports = good_reports(1)
    reports[0].update(error="RuntimeError: first\nsecond " + "x" * 5000, stage="allreduce")

    message = judge(reports, ranks=1, min_accuracy=MIN_ACCURACY).failures[0].message

    assert "RuntimeError: first second" in message
    assert "\n" not in message
    assert len(message) < 500


@pytest.mark.parametrize("reports", [good_reports(2), unconnected_processes(2), []])
def test_a_verdict_can_be_written_and_read_as_json(reports: Reports) -> None:
    verdict = judge(reports, ranks=2, min_accuracy=MIN_ACCURACY)

    assert Verdict.from_dict(json.loads(json.dumps(verdict.to_dict()))) == verdict


@pytest.mark.parametrize(("field", "value"), [("passed", True), ("schema", 2)])
def test_an_edited_verdict_is_refused(field: str, value: object) -> None:
    data = judge(unconnected_processes(2), ranks=2, min_accuracy=MIN_ACCURACY).to_dict()
    data[field] = value

    with pytest.raises(ValueError, match="verdict"):
        Verdict.from_dict(data)


def test_a_verdict_without_checks_has_not_passed() -> None:
    verdict = judge(good_reports(1), ranks=1, min_accuracy=MIN_ACCURACY)

    assert not Verdict(checks=(), figures=verdict.figures).passed


def continued_reports(ranks: int) -> Reports:
    """The reports of `provision/proof/programs/horovod_graph.py`: a second session continued from rank 0's checkpoint."""
    reports = good_reports(ranks)
    for report in reports:
        report["restart"] = {"saved_at": 96, "saved_sha256": "half", "began_at": 96, "began_sha256": "half"}
    return reports


def test_a_restart_that_continued_where_it_stopped_passes(words: Words) -> None:
    verdict = judge(continued_reports(2), ranks=2, min_accuracy=MIN_ACCURACY)

    assert verdict.passed
    messages = {check.name: check.message for check in verdict.checks}
    assert "step 96" in messages["restart"] and "rank 0" in messages["restart"]
    words("test", messages["restart"])


@pytest.mark.parametrize(
    ("rank", "changed", "figures"),
    [
        (0, {"began_at": 0}, "rank 0 of 2 (n1, pid 100)"),
        (1, {"began_sha256": "other"}, "rank 1 of 2"),
        (0, {"saved_at": None}, "step 96"),
    ],
)
def test_a_restart_from_elsewhere_fails(rank: int, changed: dict[str, object], figures: str, words: Words) -> None:
    reports = continued_reports(2)
    reports[rank]["restart"].update(changed)
    verdict = judge(reports, ranks=2, min_accuracy=MIN_ACCURACY)

    assert failed_names(verdict) == ["restart"]
    assert figures in verdict.failures[0].message
    words("test", verdict.failures[0].message)


def test_a_rank_that_does_not_report_the_restart_fails() -> None:
    reports = continued_reports(2)
    del reports[1]["restart"]

    assert failed_names(judge(reports, ranks=2, min_accuracy=MIN_ACCURACY)) == ["restart"]
