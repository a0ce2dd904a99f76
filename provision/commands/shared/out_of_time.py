"""A build whose job is nearly out of time: Slurm announces that with a signal, and the build has its job started again."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from provision.errors import Interruption
from provision.machine.programs.shell import environ
from provision.machine.programs.time_limit import OutOfTime, interrupted_at_time_limit
from provision.machine.submission.submit import requeue
from provision.machine.terminal.console import say
from provision.profile.site import Site
from provision.schedulers import job_here, restarts_here

# A step that needs more time than the job has would go on for ever: only finished steps are kept.
MOST_RESTARTS = 5


@contextlib.contextmanager
def watched_time(site: Site) -> Iterator[None]:
    """End what runs inside when the scheduler announces the end of the job's time, and let the job start again.

    Raises:
        Interruption: it came.
    """
    try:
        with interrupted_at_time_limit():
            yield
    except OutOfTime:
        raise _start_again(site) from None


def _start_again(site: Site) -> Interruption:
    """Put this job back into the queue, if that was not done often; returns the error that says so."""
    job, restarts = job_here(environ()), restarts_here(environ())
    what = f"the time of job {job} is nearly over; finished steps are kept"
    if job is None or restarts >= MOST_RESTARTS:
        hint = "raise `job.time` in the profile, then submit it again: it continues with the first unfinished step"
        return Interruption(f"{what}; it was started again {restarts} times before", hint=hint)
    say(f"{what}; it goes back into the queue, and continues with the first unfinished step")
    refused = requeue(job, site.scheduler.name)  # the scheduler ends this process now
    if refused is None:
        return Interruption(f"{what}; job {job} is in the queue again")
    return Interruption(
        f"{what}; Slurm does not start job {job} again",
        hint="submit it again: it continues with the first unfinished step",
        evidence=[refused],
    )
