"""Estimates from earlier records: the same stack, its arch before others, and nothing that was never timed."""

from __future__ import annotations

import dataclasses

from parts.records import make_record
from provision.model.record import Record, expected_seconds, expected_total
from provision.profile.choices import BackendName


def record(arch: str, built: str, stack: str = "tf", **seconds: float) -> Record:
    """A record with these seconds."""
    environment = f"{arch}/tensorflow/2.21.0-1234567890"
    return make_record(stack=stack, environment=environment, built=built, seconds=seconds)


def expected(*records: Record, arch: str = "knl", backend: BackendName = "venv") -> dict[str, float]:
    """The seconds that are expected of the stack `tf`."""
    return expected_seconds(list(records), stack="tf", arch=arch, backend=backend)


def test_the_newest_record_of_the_arch_is_used() -> None:
    """Of the same stack and backend; of another arch only if this one has none."""
    knl = record("knl", "2026-11-02", install=7, compile=112)
    newer, elsewhere = record("knl", "2026-11-03", install=9), record("haswell", "2026-11-09", install=1)
    spack = dataclasses.replace(record("knl", "2026-11-04", install=90), identity={"spack": "1.2.0 9cf6633"})
    records = (spack, newer, knl, elsewhere, record("knl", "2026-11-05", stack="old", install=5))
    assert expected(*records) == {"install": 9.0, "compile": 112.0}, "a step that was reused is in an older record"
    assert expected(*records, backend="spack") == {"install": 90.0}
    assert expected(elsewhere, arch="zen3") == {"install": 1.0}
    assert expected() == {}


def test_there_is_a_total_only_if_every_step_was_timed() -> None:
    expected = {"install": 10.0, "proof": 5.5}
    assert expected_total(["install", "proof", "publish"], expected) == 15.5
    assert expected_total(["proof"], expected) == 5.5
    assert expected_total(["install", "compile"], expected) is None
    assert expected_total(["publish"], {}) is None
