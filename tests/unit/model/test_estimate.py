"""Estimates from earlier records: the same stack, its arch before others, and nothing that was never timed."""

from __future__ import annotations

import pytest

from provision.model.estimate import expected_seconds, expected_total


def record(arch: str, built: str, stack: str = "tf", **seconds: object) -> dict[str, object]:
    """A record with these seconds."""
    return {"stack": stack, "environment": f"{arch}/tensorflow/2.21.0-1234567890", "built": built, "seconds": seconds}


def test_the_newest_record_of_the_arch_is_used() -> None:
    records = [
        record("knl", "2026-11-03", install=9),
        record("knl", "2026-11-02", install=7),
        record("haswell", "2026-11-09", install=1),
    ]
    assert expected_seconds(records, stack="tf", arch="knl", backend="venv") == {"install": 9.0}
    assert expected_seconds(records, stack="tf", arch="zen3", backend="venv") == {"install": 1.0}, (
        "the newest of another arch"
    )


def test_records_of_another_stack_are_ignored() -> None:
    assert (
        expected_seconds([record("knl", "2026-11-03", stack="old", install=9)], stack="tf", arch="knl", backend="venv")
        == {}
    )
    assert expected_seconds([], stack="tf", arch="knl", backend="venv") == {}


def test_what_another_backend_needed_says_nothing() -> None:
    spack = {**record("knl", "2026-11-03", install=90), "identity": {"spack": "1.2.0 9cf6633"}}
    records = [spack, record("knl", "2026-11-02", install=7)]
    assert expected_seconds(records, stack="tf", arch="knl", backend="venv") == {"install": 7.0}
    assert expected_seconds(records, stack="tf", arch="knl", backend="spack") == {"install": 90.0}


def test_a_step_that_the_newest_run_reused_comes_from_an_older_record() -> None:
    records = [record("knl", "2026-11-03", install=9), record("knl", "2026-11-02", install=7, compile=112)]
    assert expected_seconds(records, stack="tf", arch="knl", backend="venv") == {"install": 9.0, "compile": 112.0}


@pytest.mark.parametrize("value", [None, "9", True, -1, float("nan"), float("inf"), [9], {}])
def test_a_damaged_number_of_seconds_is_ignored(value: object) -> None:
    records = [record("knl", "2026-11-03", install=value, proof=3)]
    assert expected_seconds(records, stack="tf", arch="knl", backend="venv") == {"proof": 3.0}


@pytest.mark.parametrize("damage", [{"seconds": None}, {"seconds": [1]}, {"environment": None}, {"built": None}])
def test_a_damaged_record_is_not_an_error(damage: dict[str, object]) -> None:
    found = expected_seconds(
        [{**record("knl", "2026-11-03", install=9), **damage}], stack="tf", arch="knl", backend="venv"
    )
    assert found == ({} if "seconds" in damage else {"install": 9.0})


def test_there_is_a_total_only_if_every_step_was_timed() -> None:
    expected = {"install": 10.0, "proof": 5.5}
    assert expected_total(["install", "proof", "publish"], expected) == 15.5
    assert expected_total(["proof"], expected) == 5.5
    assert expected_total(["install", "compile"], expected) is None
    assert expected_total(["publish"], {}) is None
