"""The judge of the numerical proof, with reports that are written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from golden_files import Words
from parts.reports import make_proof
from provision.model.verdict import Verdict
from provision.proof.strategies import judge

NUMBERS = make_proof("thorough")
ABSENT = {"status": "skipped", "reason": "no elastic here", "figures": []}


def rank_report(rank: int, size: int = 2, **checks: dict[str, Any]) -> dict[str, Any]:
    """The report of a rank that finished."""
    tape = {"status": "passed", "reason": None, "figures": [{"what": "gradient", "difference": 1e-8 * (rank + 1)}]}
    return {
        "stage": "done",
        "error": None,
        "rank": rank,
        "size": size,
        "host": "n1",
        "pid": 100 + rank,
        "versions": {"tensorflow": "2.21.0", "horovod": "0.28.1"},
        "checks": {"tape": tape, **checks},
    }


def test_a_check_that_passed_on_all_ranks_shows_its_worst_figure(words: Words) -> None:
    verdict = judge(NUMBERS, [rank_report(0), rank_report(1)], 0.0)
    assert verdict.passed
    tape = next(check for check in verdict.checks if check.name == "tape")
    words("test", tape.message)
    assert tape.figure == 2e-8


def test_one_failed_rank_fails_the_proof_with_its_reason(words: Words) -> None:
    wrong = {"tape": {"status": "failed", "reason": "wrong: gradient", "figures": []}}
    verdict = judge(NUMBERS, [rank_report(0), rank_report(1, **wrong)], 0.0)
    assert not verdict.passed
    assert verdict.failures[0].message.endswith(" failed, passed: wrong: gradient")
    words("test", verdict.failures[0].message)


def test_a_missing_feature_of_tensorflow_is_skipped_with_the_reason() -> None:
    absent = {"elastic": ABSENT}
    verdict = judge(NUMBERS, [rank_report(0, **absent), rank_report(1, **absent)], 0.0)
    assert verdict.passed
    (skipped,) = (check for check in verdict.checks if check.skipped)
    assert (skipped.name, skipped.message) == ("elastic", "skipped: no elastic here")
    assert Verdict.from_dict(verdict.to_dict()) == verdict


@pytest.mark.parametrize(
    "reports",
    [
        [rank_report(0)],
        [rank_report(0, 1), rank_report(0, 1)],
        [{**rank_report(0), "stage": "check tape"}, rank_report(1)],
        [{**rank_report(0), "checks": {}}, {**rank_report(1), "checks": {}}],
        [{**rank_report(0), "checks": {"tape": ABSENT}}, {**rank_report(1), "checks": {"tape": ABSENT}}],
        [],
    ],
    ids=["one missing", "alone", "stopped in the middle", "no checks", "nothing but skips", "none"],
)
def test_incomplete_reports_do_not_pass(reports: list[dict[str, Any]]) -> None:
    assert not judge(NUMBERS, reports, 0.0).passed
