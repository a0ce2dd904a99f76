"""`build --submit`: the job of one arch, or of several, which are followed in one table; one that fails stops no other."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provision.commands.shared.following import follow_jobs, follow_to_end, refuse_unseen
from provision.commands.shared.hints import complete_error
from provision.commands.shared.order import Order, built_outcome, command_to_use, is_installed, show_plan
from provision.commands.shared.outcome import Outcome
from provision.commands.shared.target import Target
from provision.errors import EXIT_FAILED, EXIT_JOB_LEFT, EXIT_OK, ProvisionError, StoreError, raise_faults
from provision.jobs.build_job import BuildScript, build_script
from provision.machine.sharing.claims import describe_holder
from provision.machine.sharing.locks import holder
from provision.machine.submission.render_jobs import render_build_job
from provision.machine.submission.submit import queued, remove_left_settings, submit, submitter
from provision.machine.terminal.console import say, say_error
from provision.model.layout import EnvironmentId
from provision.model.plan import Plan
from provision.planning.preflight import network_faults, place_faults
from provision.schedulers.status import JobStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A build that is ready to be submitted; without a job there is nothing to do."""

    target: Target
    plan: Plan
    job: BuildScript | None


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
        return Prepared(target=target, plan=plan, job=None)
    space = place_faults(facts.place, target.needed(request), installed=is_installed(plan))
    raise_faults((*space, *network_faults(request, plan)))
    job = render_build_job(build_script(request, plan, submitter(target.store), order.account, submitted=True))
    _refuse_second(target, plan, job, order.site)
    return Prepared(target=target, plan=plan, job=job)


def _refuse_second(target: Target, plan: Plan, job: BuildScript, site: str) -> None:
    """Refuse a second job for an environment that is being built: its nodes would wait, idle, for the first.

    A job that is queued is known by its name, which contains the environment's fingerprint.
    """
    other = holder(Path(target.store.layout.lock(plan.environment)))
    number = queued(job) if other is None else other.get("job")
    if other is not None or number is not None:
        raise StoreError(
            f"job {number} is queued to build `{plan.environment}`"
            if other is None
            else f"`{plan.environment}` is being built by {describe_holder(other)}",
            hint=f"`provision job follow {number} --site {site}`" if number else "wait for that process, or end it",
            kind="locked",
        )


def submit_one(order: Order) -> Outcome:
    """Submit the job of one arch, and follow it to its end.

    Raises:
        Interruption: as of `follow_to_end`.
        ProvisionError: as of `prepare_job`, or the job failed.
    """
    prepared = prepare_job(order)
    target, plan = prepared.target, prepared.plan
    if prepared.job is None:
        return built_outcome(target.site, target.store, plan.environment, order.nothing_to_do, publish=order.publish)
    show_plan(plan, target.expected_seconds(plan), verbose=order.verbose)
    number = submit(prepared.job, target.store)
    again = f"provision job follow {number} --site {target.site.typed}"
    if not order.wait:
        say(f"submitted job {number}; follow it: `{again}`")
        return Outcome(
            text=number, result={"job": number, "environment": str(plan.environment)}, exit_code=EXIT_JOB_LEFT
        )
    say(f"submitted job {number} for {plan.environment}")
    status, name = follow_to_end(number, again, target.site, target.store, build=True)
    # Another job may have finished the rebuild meanwhile, and this one its own plan of it.
    if name in ("", str(plan.environment)):
        refuse_unseen(target.site, target.store, plan.environment, status, publish=order.publish)
    done = f"{'published' if order.publish else 'proved'} by job {number}"
    return built_outcome(target.site, target.store, plan.environment, done, publish=order.publish)


@dataclass(slots=True, kw_only=True)
class SubmittedBuild:
    """The build of one arch: the environment, its job, and what became of it."""

    arch: str
    environment: str | None = None
    job: str | None = None
    state: str = "refused"
    use: str | None = None
    error: ProvisionError | None = None

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name != "error"}
        return {**fields, "error": self.error.to_dict() if self.error else None}


def submit_several(order: Order, archs: Sequence[str]) -> Outcome:
    """Submit a job for each arch, and follow all of them to their ends; the errors are shown whole, on stderr.

    Raises:
        Interruption: the user stopped following; the jobs keep running.
    """
    builds = build_in_jobs(order, archs)
    for build in builds:
        if build.error:
            say("")
            say_error(build.error, build.arch)
    width = max(len(build.arch) for build in builds)
    lines = [
        f"{build.arch:<{width}}  {build.state}"
        + (f", job {build.job}" if build.job else "")
        + (f": {build.use}" if build.use and not build.error else "")
        for build in builds
    ]
    failed = any(build.error for build in builds)
    waiting = any(build.state == "submitted" for build in builds)
    return Outcome(
        text="\n".join(lines),
        result={"builds": [build.to_dict() for build in builds]},
        exit_code=EXIT_FAILED if failed else EXIT_JOB_LEFT if waiting else EXIT_OK,
    )


def build_in_jobs(order: Order, archs: Sequence[str]) -> list[SubmittedBuild]:
    """Submit a job for each arch, follow all of them, and return what became of each.

    Raises:
        Interruption: as of `submit_several`.
    """
    builds: list[SubmittedBuild] = []
    targets: dict[str, Target] = {}
    for arch in archs:
        build = SubmittedBuild(arch=arch)
        builds.append(build)
        try:
            prepared = prepare_job(dataclasses.replace(order, arch=arch))
            target, plan = prepared.target, prepared.plan
            build.environment, build.use = str(plan.environment), command_to_use(target, plan)
            if prepared.job is None:
                build.state = "nothing to do"
            else:
                build.job, build.state = submit(prepared.job, target.store), "submitted"
                targets[arch] = target
                say(f"{arch}: submitted job {build.job} for {build.environment}")
        except ProvisionError as error:
            build.error = complete_error(error, order.subject(arch))
            say(f"{arch}: refused: {error.message}")
    if targets and order.wait:
        _follow(order, builds, targets)
    return builds


def _follow(order: Order, builds: Sequence[SubmittedBuild], targets: dict[str, Target]) -> None:
    site = next(iter(targets.values())).site
    stores = {arch: target.store for arch, target in targets.items()}
    submitted = {build.arch: build for build in builds if build.job is not None}
    try:
        errors = follow_jobs(site, stores, {arch: build.job or "" for arch, build in submitted.items()})
    finally:
        for store in stores.values():
            remove_left_settings(store, site.scheduler.name)
    for arch, build in submitted.items():
        error = errors[arch]
        build.error = complete_error(error, order.subject(arch)) if error else None
        if build.error is None and build.environment:
            env = EnvironmentId.parse(build.environment)
            status = JobStatus(job=build.job or "", state="COMPLETED")
            try:
                refuse_unseen(site, stores[arch], env, status, publish=order.publish)
            except ProvisionError as error:
                build.error = error
        build.state = "failed" if build.error else "published" if order.publish else "proved"
