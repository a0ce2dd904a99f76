"""Any JSON in the place of a file that lies below the root, or that a program of a proof writes."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given

from parts.hostile import damaged, fuzzed, json_values, refused, strict_json
from parts.records import DESCRIPTION, PROOF, make_record
from parts.reports import make_proof, one_process, workers
from provision.model.event import Event
from provision.model.generation import Deprecation, Generation
from provision.model.layout import EnvironmentId
from provision.model.manifest import ManifestHead
from provision.model.operation import Expectation, ExpectedGpu
from provision.model.plan import Description
from provision.model.record import Receipt, Record, expected_seconds
from provision.model.verdict import ProofResult
from provision.planning.upgrade_changes import ArchUpgrade, Upgrade
from provision.proof.inspection import judge_inspection
from provision.proof.loaded import judge_loaded
from provision.proof.strategies import STRATEGIES, judge

RECORD = json.loads(json.dumps(make_record().to_dict()))
RECEIPT = {"step": "install", "seconds": 1.0, "host": "n1", "wheel": "x", "checks": [], "versions": {"a": "1"}}
AFTER = "a/tensorflow/2.15.1-0123456789"
OTHERS = tuple(
    json.loads(json.dumps(value.to_dict()))
    for value in (
        Generation(before=1, hidden=frozenset({"x/1"}), deprecated={"x/1": Deprecation(date="2027-03-01", text="x")}),
        ManifestHead(files=1, size=2, digest="0", first=("bin",), records={"lock.txt": "0"}, beside=("/store",)),
        Upgrade(
            stack="s",
            state="building",
            archs=(ArchUpgrade(arch="a", before=None, after=EnvironmentId.parse(AFTER)),),
            locks=("x",),
        ),
        DESCRIPTION,
        PROOF,
        Event(kind="plan", steps=(("a", "b", "create"),), expected=(("a", 1.0),), error={"kind": "x"}),
    )
)
REPORTS = ([one_process()], workers())
INSPECTION = {
    "errors": {},
    "versions": {"tensorflow": "2.15.1", "horovod": "0.28.1"},
    "mapped_objects": ["/usr/lib/libmpi.so"],
    "enable_user_site": False,
    "horovod": {"mpi_built": True, "nccl_built": 1},
    "mpi": {"library": "x"},
}
EXPECTED = Expectation(
    framework="tensorflow",
    versions=(("tensorflow", "2.15.1"), ("horovod", "0.28.1")),
    mpi_libraries=("/usr/lib/libmpi.so",),
    allowed=("/usr",),
    gpu=ExpectedGpu(capabilities=("80",), cuda_version="12.2", nccl_version="2.18", nccl_library="/x/libnccl.so"),
)


@fuzzed(60)
@given(damaged((RECORD,), json_values))
def test_any_record_is_read_or_refused(data: dict[str, Any]) -> None:
    with refused(ValueError):
        record = Record.from_dict(data)
        strict_json(json.dumps(record.to_dict()))
        assert record.verdict.summary
        expected_seconds([record], stack="tensorflow-2.15.1", arch="knl", backend="venv")
        judge_loaded(record, {"LOADEDMODULES": "gcc/12.2.0"}, None)


@fuzzed(40)
@given(damaged((RECEIPT,), json_values))
def test_any_receipt_is_read_or_refused(data: dict[str, Any]) -> None:
    with refused(ValueError):
        Receipt.from_dict(data).to_dict()


@fuzzed(60)
@given(damaged(OTHERS, json_values))
def test_any_other_file_of_the_root_is_read_or_refused(data: dict[str, Any]) -> None:
    for kind in (Generation, ManifestHead, Upgrade, Description, ProofResult, Event):
        with refused(ValueError):
            strict_json(json.dumps(kind.from_dict(data).to_dict()))


@fuzzed(60)
@given(damaged(REPORTS, json_values))
def test_any_reports_of_a_proof_get_a_verdict(reports: list[Any]) -> None:
    given = [report for report in reports if isinstance(report, dict)]
    for program in STRATEGIES:
        verdict = judge(make_proof(program, gpus=True), given, 0.9)
        strict_json(json.dumps(verdict.to_dict()))


@fuzzed(60)
@given(damaged((INSPECTION,), json_values))
def test_any_report_of_an_inspection_is_judged(report: dict[str, Any]) -> None:
    for check in judge_inspection(report, EXPECTED, str):
        strict_json(json.dumps(check.to_dict()))
