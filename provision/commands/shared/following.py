"""What `build --submit` and `job follow` share."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from provision.errors import Interruption

if TYPE_CHECKING:
    from provision.model.plan import Plan
    from provision.profile.site import Site


def stopped_following(number: str, again: str, site: Site) -> Interruption:
    """The error of a user who stops following a job, which keeps running. `again` is the command that resumes."""
    from provision.schedulers import scheduler_for

    end = f"{scheduler_for(site.scheduler.name).CANCEL} {number}"
    return Interruption(
        f"stopped following job {number}, which keeps running", hint=f"resume: `{again}`; cancel: `{end}`"
    )


def waiting_text(plan: Plan, holder: dict[str, Any], site: str) -> str:
    """What to say while another run builds the same; the progress of a job can be followed."""
    from provision.machine.root.locks import describe_holder

    job = holder.get("job")
    where = f"; `provision job follow {job} --site {shlex.quote(site)}` shows its progress" if job else ""
    return f"waiting: {plan.environment} is being built by {describe_holder(holder)}{where}"
