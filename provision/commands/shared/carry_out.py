"""Carrying a plan out under its lock, or waiting for another process that does."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path
from typing import Any

from provision.commands.shared.order import Order, show_plan
from provision.commands.shared.target import Target
from provision.errors import CommandError
from provision.machine.install.executor import Executor
from provision.machine.probes.ask_scheduler import status
from provision.machine.root.event_file import shown_to_waiting, to_all
from provision.machine.sharing.claims import describe_holder
from provision.machine.sharing.locks import Waiting
from provision.machine.submission.follow import Follower
from provision.machine.terminal.progress_lines import Plain
from provision.model.event import Event, Listener, plan_event
from provision.model.facts import Facts
from provision.model.plan import Plan
from provision.model.request import Request


def carry_out(order: Order, target: Target, request: Request, facts: Facts, plan: Plan, listen: Listener) -> Plan:
    """Carry the plan out under its lock; if another process holds it, wait, and then plan again."""
    store = target.store
    path, does = Path(store.layout.lock(plan.environment)), {"does": f"builds {plan.environment}"}
    with store.held(path, does, waiting_for(target, plan, listen, order.site), wait=order.wait) as lock:
        wanted, plan = plan.environment, target.plan(request, facts)
        if plan.environment != wanted:  # another process finished this rebuild meanwhile
            plan = target.plan(dataclasses.replace(request, rebuild=False), facts)
        if not plan.done:
            expected = target.expected_seconds(plan)
            show_plan(plan, expected, verbose=order.verbose, replaced=target.replaced_line(plan, request))
            with shown_to_waiting(store, plan.environment, lock) as write_event:
                events = to_all(listen, write_event)
                events(plan_event(plan, expected))
                Executor(
                    plan=plan, site=target.site, store=store, environ=facts.environ, listen=events, lock=lock
                ).run()
    return plan


def waiting_for(target: Target, plan: Plan, listen: Listener, site: str) -> Waiting:
    """What a build shows while another run builds the same: who it is, and the steps that it carries out."""
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
    job = holder.get("job")
    where = f"; `provision job follow {job} --site {shlex.quote(site)}` shows its progress" if job else ""
    return f"waiting: {plan.environment} is being built by {describe_holder(holder)}{where}"
