"""A site's batch system, as `[scheduler]` describes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from provision.model.patterns import OPTION
from provision.model.reader import Reader

SchedulerName = Literal["none", "slurm"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduler:
    """The batch system, and options that every job of this site needs (an account, say)."""

    name: SchedulerName
    options: tuple[str, ...]


def read_scheduler(table: Reader) -> Scheduler:
    """The scheduler of `[scheduler]`; a site without that table has none."""
    scheduler = Scheduler(
        name=table.text("system", "none", choices=("none", "slurm")),  # type: ignore[arg-type]
        options=table.texts("options", pattern=OPTION),
    )
    table.done()
    return scheduler
