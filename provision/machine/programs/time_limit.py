"""The signal with which a scheduler announces the end of a job's time."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType


class OutOfTime(KeyboardInterrupt):
    """The scheduler announced the end of the job's time."""


@contextlib.contextmanager
def interrupted_at_time_limit() -> Iterator[None]:
    """Interrupt what runs inside when SIGUSR1 comes: Slurm sends it if the job has the option `--signal=B:USR1@SECONDS`.

    Raises:
        OutOfTime: it came.
    """
    before = signal.signal(signal.SIGUSR1, _announced)
    try:
        yield
    finally:
        signal.signal(signal.SIGUSR1, before)


def _announced(number: int, frame: FrameType | None) -> None:
    signal.signal(number, _ignored)
    raise OutOfTime


def _ignored(number: int, frame: FrameType | None) -> None:
    """Nothing: a second one must not interrupt what frees the locks and ends the programs."""
