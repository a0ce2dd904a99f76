"""Records, verdicts and receipts are read back as they were written, or are refused with the value that is wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest

from golden_files import Words
from parts.loops import for_each
from parts.records import FIGURES, PROOF, make_record
from provision.model.check import Check
from provision.model.record import Receipt, Record
from provision.model.verdict import ProofResult, Verdict


def test_a_record_is_read_back_as_it_was_written() -> None:
    for record in (make_record(), make_record(job=None, wheel=None, versions=None, checks=())):
        assert Record.from_dict(json.loads(json.dumps(record.to_dict()))) == record
    receipt = Receipt(step="inspect", seconds=1.5, host="n1", details={"versions": {"tensorflow": "2.15.1"}})
    assert Receipt.from_dict(json.loads(json.dumps(receipt.to_dict()))) == receipt
    with pytest.raises(ValueError, match="seconds"):
        Receipt.from_dict({"step": "inspect", "host": "n1"})


def test_a_record_of_an_older_version_is_read() -> None:
    data = make_record().to_dict()
    for check in (*data["checks"], *data["verdict"]["checks"]):
        del check["skipped"], check["figure"]
    data["seconds"]["compile"] = None
    assert Record.from_dict(data).seconds == {"create": 1.5, "proof": 12.5}


NOT_REQUIRED = {"versions", "checks", "job", "wheel", "wheels", "user", "forced", "traces", "known_advisories"}


@for_each("key", sorted(set(make_record().to_dict()) - NOT_REQUIRED))
def test_a_record_without_a_value_is_refused(key: str) -> None:
    data = make_record().to_dict()
    del data[key]
    with pytest.raises(ValueError, match=key):
        Record.from_dict(data)


FAILED = Verdict(checks=(Check(name="reports", passed=False, message="none"),), figures=FIGURES)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("schema", 2), ("prefix", None), ("modules", "gcc"), ("modules", [1]), ("identity", {"python": 3})),
        *(("identity", []), ("seconds", {"proof": "fast"}), ("seconds", {"proof": True}), ("checks", [{"name": "x"}])),
        *(("checks", ["x"]), ("job", 42), ("verdict", {}), ("verdict", {**PROOF.to_dict(), **FAILED.to_dict()})),
    ],
)
def test_a_record_with_a_wrong_value_is_refused(key: str, value: Any) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Record.from_dict({**make_record().to_dict(), key: value})


@pytest.mark.parametrize(
    "damage",
    [
        {"passed": False},
        {"checks": [{"name": "x", "passed": False, "message": ""}]},
        {"checks": []},
        {"checks": None},
        {"checks": [{"name": "x", "passed": "yes", "message": ""}]},
        {"figures": {}},
        {"figures": None},
        {"schema": 0},
        {"data": None},
        {"command": "mpiexec"},
    ],
)
def test_a_damaged_proof_is_refused(damage: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        ProofResult.from_dict({**PROOF.to_dict(), **damage})


def test_a_proof_is_summarized_in_one_line(words: Words) -> None:
    words("test", PROOF.summary)
