"""The checks of the numerical proof: each check of `proof/programs/thorough.py`, on all ranks. Pure.

Each process compares its own figures with those of one process on the concatenated batches. Here it is decided whether all
processes did so with the same result.
"""

from __future__ import annotations

from collections.abc import Mapping

from provision.model.check import Check, bad, skipped
from provision.proof.reports import Report, Run


def check_numbers(run: Run) -> list[Check]:
    """One check for each check of the program, and a failed one if none has figures."""
    names = dict.fromkeys(name for report in run.finished for name in report.part("checks").fields)
    checks = [_check_all_ranks(run, str(name)) for name in names]
    if all(check.skipped for check in checks):
        checks.append(bad("checks", "expected checks with figures, no process has any"))
    return checks


def _check_all_ranks(run: Run, name: str) -> Check:
    """One check of the program, on all ranks: passed everywhere, or skipped everywhere for the same reason."""
    records = [report.part("checks").part(name) for report in run.finished]
    states = {str(record.get("status")) for record in records}
    reasons = [str(record.get("reason")) for record in records if record.get("reason")]
    if states == {"skipped"}:
        return skipped(name, f"skipped: {reasons[0] if reasons else 'no reason given'}")
    if states != {"passed"}:
        reason = f": {reasons[0]}" if reasons else ""
        return bad(name, f"expected it to pass on every rank, seen {', '.join(sorted(states))}{reason}")
    figures = [
        Report(figure) for record in records for figure in record.values("figures") if isinstance(figure, Mapping)
    ]
    measured = [difference for figure in figures if (difference := figure.number("difference")) is not None]
    worst = f"worst difference {max(measured):.1e} of {len(measured)}" if measured else "no figure to compare"
    return Check(
        name=name, passed=True, message=f"passed on {len(records)} ranks, {worst}", figure=max(measured, default=None)
    )
