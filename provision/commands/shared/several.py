"""`build --submit` for several archs: a job for each, all followed in one table; one that fails stops no other."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from provision.commands.shared.following import refuse_unseen
from provision.commands.shared.outcome import Outcome
from provision.commands.shared.submitting import Order, command_to_use, prepare_job
from provision.commands.shared.target import Target
from provision.errors import EXIT_FAILED, EXIT_JOB_LEFT, EXIT_OK, Interruption, ProvisionError
from provision.machine.submission.follow import FollowedJob, follow_all
from provision.machine.submission.submit import remove_left_settings, submit
from provision.machine.terminal.console import say
from provision.machine.terminal.progress_lines import listeners
from provision.model.layout import EnvironmentId
from provision.schedulers.status import JobStatus


@dataclass(slots=True, kw_only=True)
class Build:
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
    """Submit a job for each arch, and follow all of them to their ends.

    Raises:
        Interruption: the user stopped following; the jobs keep running.
    """
    return _outcome(build_in_jobs(order, archs))


def build_in_jobs(order: Order, archs: Sequence[str]) -> list[Build]:
    """Submit a job for each arch, follow all of them, and return what became of each.

    Raises:
        Interruption: as of `submit_several`.
    """
    builds: list[Build] = []
    targets: dict[str, Target] = {}
    for arch in archs:
        build = Build(arch=arch)
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
            build.error = error
            say(f"{arch}: refused: {error.message}")
    if targets and order.wait:
        _follow(order, builds, targets)
    return builds


def _follow(order: Order, builds: Sequence[Build], targets: dict[str, Target]) -> None:
    submitted = [build for build in builds if build.job is not None]
    site = next(iter(targets.values())).site
    try:
        with listeners() as listener_of:
            followed = [
                FollowedJob(
                    build.job or "", site.scheduler.name, targets[build.arch].store, listener_of(build.arch), build=True
                )
                for build in submitted
            ]
            results = follow_all(followed)
    except KeyboardInterrupt:
        again = "; ".join(f"`provision job follow {build.job} --site {order.site}`" for build in submitted)
        raise Interruption("stopped following the jobs, which keep running", hint=f"follow one: {again}") from None
    finally:
        for target in targets.values():
            remove_left_settings(target.store, site.scheduler.name)
    for build, job in zip(submitted, followed, strict=True):
        build.error = results[job.job]
        if build.error is None and build.environment:
            env = EnvironmentId.parse(build.environment)
            status = JobStatus(job=job.job, state="COMPLETED")
            try:
                refuse_unseen(site, job.store, env, status, publish=order.publish)
            except ProvisionError as error:
                build.error = error
        build.state = "failed" if build.error else "published" if order.publish else "proved"


def _outcome(builds: Sequence[Build]) -> Outcome:
    """What became of each arch; the errors are shown whole, on stderr."""
    for build in builds:
        if build.error:
            say("")
            for line in build.error.to_lines():
                say(f"{build.arch}: {line}" if line else "")
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
