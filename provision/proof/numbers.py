"""The judge of the numerical proof: what N processes of `proof/programs/thorough.py` report, to a verdict. Pure.

Each process compares its own figures with those of one process on the concatenated batches. The judge decides whether all
processes did so with the same result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from provision.model.verdict import Check, Verdict, bad
from provision.proof.figures import figures_of
from provision.proof.gpu_checks import check_missing_gpus
from provision.proof.rank_checks import check_nodes, check_ranks, check_reports, check_versions
from provision.proof.reports import is_finished


def judge_numbers(reports: Sequence[Mapping[str, Any]], *, ranks: int, nodes: int) -> Verdict:
    """Compare the reports of one numerical proof with each other: one check for each check of the program."""
    finished = [report for report in reports if is_finished(report)]
    checks = [*check_missing_gpus(reports), check_reports(reports, ranks)]
    if finished:
        checks += [check_ranks(finished, ranks), check_nodes(finished, nodes), check_versions(finished)]
        names = dict.fromkeys(name for report in finished for name in report.get("checks") or ())
        program_checks = [_check_all_ranks(name, finished) for name in names]
        checks += program_checks
        if all(check.skipped for check in program_checks):
            checks.append(bad("checks", "expected checks with figures, no process has any"))
    return Verdict(checks=tuple(checks), figures=figures_of(finished))


def _check_all_ranks(name: str, finished: Sequence[Mapping[str, Any]]) -> Check:
    """One check of the program, on all ranks: passed everywhere, or skipped everywhere for the same reason."""
    records = [(report.get("checks") or {}).get(name) or {} for report in finished]
    states = {str(record.get("status")) for record in records}
    reasons = [str(record["reason"]) for record in records if record.get("reason")]
    if states == {"skipped"}:
        return Check(
            name=name, passed=True, skipped=True, message=f"skipped: {reasons[0] if reasons else 'no reason given'}"
        )
    if states != {"passed"}:
        reason = f": {reasons[0]}" if reasons else ""
        return bad(name, f"expected it to pass on every rank, seen {', '.join(sorted(states))}{reason}")
    measured = [
        figure["difference"]
        for record in records
        for figure in record.get("figures") or ()
        if isinstance(figure.get("difference"), (int, float))
    ]
    worst = f"worst difference {max(measured):.1e} of {len(measured)}" if measured else "no figure to compare"
    return Check(
        name=name, passed=True, message=f"passed on {len(records)} ranks, {worst}", figure=max(measured, default=None)
    )
