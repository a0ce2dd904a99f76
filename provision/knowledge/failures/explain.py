"""What a log shows: the one entry to the readers of this room."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from provision.knowledge.failures.appended_runs import RunStart, decide
from provision.knowledge.failures.catalogue import Catalogue
from provision.knowledge.failures.findings import Explanation
from provision.knowledge.failures.log_reader import LogReader


def explain(
    blocks: Iterable[bytes], catalogue: Catalogue, *, failed: bool = False, hide: Callable[[str], str] = str
) -> Explanation:
    """What a log shows, in blocks of whole lines: of several runs that wrote to it, the last one that shows a failure."""
    whole, start = LogReader(catalogue, hide=hide), RunStart()
    run: LogReader | None = None
    shows: Explanation | None = None
    begun = 1
    for block in blocks:
        for index, part in enumerate(start.split(block)):
            if start.repeats:
                run = shows = None
            elif index and whole.failed_at >= begun:
                shows = _later(run, begun, shows)
                begun = whole.next_line
                run = LogReader(catalogue, hide=hide, first=begun)
            for reader in (whole, run) if part else ():
                if reader:
                    reader.feed(part)
    shows, explanation = _later(run, begun, shows), whole.conclude(failed=failed)
    return decide(shows, explanation) if shows else explanation


def _later(run: LogReader | None, begins: int, shows: Explanation | None) -> Explanation | None:
    """What a run that begins with this line shows, if it shows a failure; else what an earlier one showed."""
    explanation = run.conclude() if run else None
    return replace(explanation, begins=begins) if explanation and explanation.known else shows
