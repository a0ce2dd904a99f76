"""What `build --submit` and `job follow` share."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from provision.errors import Interruption

if TYPE_CHECKING:
    from provision.commands.shared.target import Target
    from provision.machine.root.locks import Waiting
    from provision.model.event import Listener
    from provision.model.plan import Plan
    from provision.profile.site import Site


def stopped_following(number: str, again: str, site: Site) -> Interruption:
    """The error of a user who stops following a job, which keeps running. `again` is the command that resumes."""
    from provision.schedulers import scheduler_for

    end = f"{scheduler_for(site.scheduler.name).CANCEL} {number}"
    return Interruption(
        f"stopped following job {number}, which keeps running", hint=f"resume: `{again}`; cancel: `{end}`"
    )


def waiting_for(target: Target, plan: Plan, listen: Listener, site: str) -> Waiting:
    """What a build shows while another run builds the same: who it is, and the steps that it carries out."""
    from provision.errors import CommandError
    from provision.machine.root.locks import Waiting
    from provision.machine.submission import status
    from provision.machine.terminal.console import Plain
    from provision.machine.terminal.follow import Follower
    from provision.model.event import Event

    followers: list[Follower] = []

    def say(text: str) -> None:
        listen(Event(kind="say", text=text))

    plain = Plain(say=lambda line: say(f"  {line}"))

    def waits(holder: dict[str, Any]) -> None:
        say(waiting_text(plan, holder, site))
        followers[:] = [Follower(Path(target.store.layout.events(plan.environment, str(holder.get("token")))))]

    def looks() -> None:
        for follower in followers:
            for event in follower.events():
                plain.listen(event)

    def ended(job: str) -> bool | None:
        scheduler = target.site.scheduler.name
        try:
            now = status(job, scheduler) if scheduler != "none" else None
        except CommandError:
            return None
        return now.ended if now else None

    return Waiting(waits=waits, looks=looks, says=say, ended=ended)


def waiting_text(plan: Plan, holder: dict[str, Any], site: str) -> str:
    """What to say while another run builds the same; the progress of a job can be followed."""
    from provision.machine.root.locks import describe_holder

    job = holder.get("job")
    where = f"; `provision job follow {job} --site {shlex.quote(site)}` shows its progress" if job else ""
    return f"waiting: {plan.environment} is being built by {describe_holder(holder)}{where}"
