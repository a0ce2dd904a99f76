"""What a build is asked for, and what `build --submit` does for each arch before its job is submitted."""

from __future__ import annotations

import contextlib
import dataclasses
from dataclasses import dataclass
from pathlib import Path

from provision.commands.shared.built import is_loaded_by_users, load_command
from provision.commands.shared.following import waiting_for
from provision.commands.shared.target import Target, make_target
from provision.errors import StoreError
from provision.jobs.build_job import BuildScript, build_script
from provision.machine.configuration import shipped
from provision.machine.sharing.claims import describe_holder
from provision.machine.sharing.locks import Lock
from provision.machine.submission.render_jobs import render_build_job
from provision.machine.submission.submit import queued, submitter
from provision.model.event import Listener
from provision.model.plan import Plan
from provision.model.problem import raise_problems
from provision.planning.preflight import network_problems, place_problems
from provision.profile.stack import BackendName


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What `build` and `upgrade` build: the names of the site, arch, stack and backend, and how."""

    site: str
    arch: str | None
    stack: str | None
    backend: BackendName | None = None
    account: str | None = None
    publish: bool = True
    rebuild: bool = False
    wait: bool = True
    """Whether to follow a job to its end, and to wait for another process that builds the same."""
    verbose: bool = False

    @property
    def nothing_to_do(self) -> str:
        """The sentence of a build that finds everything done."""
        return f"nothing to do: {'built, proved and published' if self.publish else 'built and proved'}"

    def read_target(self) -> Target:
        """What the names mean.

        Raises:
            ConfigError: one of them does not exist, or its file has faults.
        """
        target = make_target(shipped.load_site(self.site), self.arch, self.stack, self.backend)
        return dataclasses.replace(target, publish=self.publish, rebuild=self.rebuild)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A build that is ready to be submitted; without a job there is nothing to submit, and `done` says why."""

    target: Target
    plan: Plan
    job: BuildScript | None
    done: str = ""


def prepare_job(order: Order) -> Prepared:
    """Plan the build and write its job.

    Raises:
        ProvisionError: something that a build needs is missing, or a job builds the same environment already.
    """
    target = order.read_target()
    facts = target.observe()
    request = target.request(facts)
    plan = target.plan(request, facts)
    if plan.done:
        return Prepared(target=target, plan=plan, job=None, done=order.nothing_to_do)
    space = place_problems(facts.place, target.needed(request), installed=is_installed(plan))
    raise_problems((*space, *network_problems(request, plan)))
    _refuse_second(target, plan, order.site)
    job = render_build_job(build_script(request, plan, submitter(target.store), order.account, submitted=True))
    _refuse_queued(job, plan, order.site)
    return Prepared(target=target, plan=plan, job=job)


def locked(order: Order, target: Target, plan: Plan, listen: Listener) -> contextlib.AbstractContextManager[Lock]:
    """The lock of the plan's environment."""
    return target.store.held(
        Path(target.store.layout.lock(plan.environment)),
        {"does": f"builds {plan.environment}"},
        waiting_for(target, plan, listen, order.site),
        wait=order.wait,
    )


def _refuse_second(target: Target, plan: Plan, site: str) -> None:
    """Refuse a second job for an environment that is being built: its nodes would wait, idle, for the first."""
    other = target.store.holder(Path(target.store.layout.lock(plan.environment)))
    if other is not None:
        job = other.get("job")
        raise StoreError(
            f"`{plan.environment}` is being built by {describe_holder(other)}",
            hint=f"`provision job follow {job} --site {site}`" if job else "wait for that process, or end it",
            kind="locked",
        )


def _refuse_queued(job: BuildScript, plan: Plan, site: str) -> None:
    """Refuse to submit a job that is in the queue already; its name contains the environment's fingerprint."""
    number = queued(job)
    if number is not None:
        raise StoreError(
            f"job {number} is queued to build `{plan.environment}`",
            hint=f"`provision job follow {number} --site {site}`",
            kind="locked",
        )


def is_installed(plan: Plan) -> bool:
    """Whether the packages, the largest part of the environment, are installed already."""
    return any(step.name == "install" and step.action == "keep" for step in plan.steps)


def command_to_use(target: Target, plan: Plan) -> str | None:
    """The command that loads what the plan builds; None as of `load_command`."""
    candidate = not target.publish and not is_published(target, plan)
    return load_command(target.site, target.store, plan.environment, candidate=candidate)


def is_published(target: Target, plan: Plan) -> bool:
    """Whether users load what the plan builds."""
    return is_loaded_by_users(target.store, plan.environment)
