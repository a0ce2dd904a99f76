"""What the verbs that follow a job share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision.errors import Interruption

if TYPE_CHECKING:
    from provision.profile.site import Site


def stopped_following(number: str, again: str, site: Site) -> Interruption:
    """The error of a user who stops following a job, which keeps running. `again` is the command that resumes."""
    from provision.schedulers import scheduler_for

    end = f"{scheduler_for(site.scheduler.name).CANCEL} {number}"
    return Interruption(
        f"stopped following job {number}, which keeps running", hint=f"resume: `{again}`; cancel: `{end}`"
    )
