"""What `build --submit` and `job follow` share."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from provision.commands.shared.order import is_loaded_by_users
from provision.errors import Interruption, JobError, ProvisionError
from provision.machine.programs.shell import node_name
from provision.machine.root.store import Store
from provision.machine.submission.follow import FollowedJob, follow, follow_all, wait_until_seen
from provision.machine.submission.submit import remove_left_settings
from provision.machine.terminal.console import say
from provision.machine.terminal.progress_lines import listener, listeners
from provision.model.event import Event
from provision.model.layout import EnvironmentId
from provision.model.quoting import bash
from provision.profile.site import Site
from provision.schedulers import scheduler_for
from provision.schedulers.status import JobStatus


def stopped_following(number: str, again: str, site: Site) -> Interruption:
    """The error of a user who stops following a job, which keeps running. `again` is the command that resumes."""
    end = shlex.join(scheduler_for(site.scheduler.name).cancel_argv(number))
    return Interruption(
        f"stopped following job {number}, which keeps running", hint=f"resume: `{again}`; cancel: `{end}`"
    )


def follow_to_end(number: str, again: str, site: Site, store: Store, **of_job: Any) -> tuple[JobStatus, str]:
    """Follow a job to its end; its status, and the environment that it builds, as its events name it.

    `of_job` is what is known of it: `build` and `command` of `follow`.

    Raises:
        Interruption: the user stopped following; the job keeps running, and `again` is the command that resumes.
        ProvisionError: as of `follow`.
    """
    name = ""
    try:
        with listener() as listen:

            def note(event: Event) -> None:
                nonlocal name
                name = event.environment if event.kind == "plan" else name
                listen(event)

            return follow(number, site.scheduler.name, store, note, **of_job), name
    except KeyboardInterrupt:
        raise stopped_following(number, again, site) from None
    finally:
        remove_left_settings(store, site.scheduler.name)


def follow_jobs(site: Site, stores: Mapping[str, Store], jobs: Mapping[str, str]) -> dict[str, ProvisionError | None]:
    """Follow the jobs of several archs in one table, each in the store of its arch; the error of each arch, if there is one.

    Raises:
        Interruption: the user stopped following; the jobs keep running.
    """
    name = site.scheduler.name
    try:
        with listeners() as listener_of:
            followed = [
                FollowedJob(job, name, stores[arch], listener_of(arch), build=True) for arch, job in jobs.items()
            ]
            results = follow_all(followed)
    except KeyboardInterrupt:
        again = "; ".join(f"`provision job follow {job} --site {site.typed}`" for job in jobs.values())
        raise Interruption("stopped following the jobs, which keep running", hint=f"follow one: {again}") from None
    return {arch: results.get(job) for arch, job in jobs.items()}


def refuse_unseen(site: Site, store: Store, env: EnvironmentId, status: JobStatus, *, publish: bool) -> None:
    """Raise a `JobError` if this machine does not see what a job that ended well has built, and with `publish` let users load.

    The exit code of a job says nothing about the root: the nodes can have another folder under the same path.
    """
    record = Path(store.layout.records_folder(env)) / "record.json"
    wait_for_result(site, store, status, record, lambda: store.record(env) is not None)
    if publish:
        pointer = Path(store.layout.modules(env.arch))
        wait_for_result(site, store, status, pointer, lambda: is_loaded_by_users(store, env))


def wait_for_result(site: Site, store: Store, status: JobStatus, path: Path, there: Callable[[], bool]) -> None:
    """Wait for what a job that ended well wrote to `path`.

    Raises:
        JobError: it does not come.
    """
    if wait_until_seen(there, path.parent, say):
        return
    nodes = status.nodes if status.nodes != "(null)" else ""
    look = bash("ls -id %s; df %s", str(store.root), str(store.root))
    raise JobError(
        f"job {status.job} ended well, but `{node_name()}` does not see its result",
        state=status.state,
        evidence=[
            f"not here, or not as the job left it: {path}",
            f"root: {store.root}; {nodes or 'the nodes of the job'} may have another folder there",
        ],
        hint=f"`{look}`, here and in a job, shows whether it is the same folder; if it is, the file system is late: "
        f"`provision job follow {status.job} --site {site.typed}` looks again",
    )
