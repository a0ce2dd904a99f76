"""`provision job follow ID`: show the job of a build or of a user until it ends."""

from __future__ import annotations

import re
from pathlib import Path

from provision.commands.shared.environments import read_store
from provision.commands.shared.following import follow_to_end, refuse_unseen, wait_for_result
from provision.commands.shared.order import built_outcome, is_loaded_by_users
from provision.commands.shared.outcome import Args, Outcome
from provision.errors import ConfigError
from provision.machine.configuration import shipped
from provision.machine.files.disk import is_file
from provision.model.layout import EnvironmentId
from provision.model.quoting import bash
from provision.schedulers import scheduler_for

# Of an environment: a hash, and the number of a rebuild.
FINGERPRINT = re.compile(r"[0-9a-f]{10}(\.[0-9]+)?")


def run(args: Args) -> Outcome:
    """Follow the job to its end; Ctrl-C leaves it running."""
    site = shipped.load_site(args.site)
    if site.scheduler.name == "none":
        raise ConfigError(
            f"site `{site.name}` has no scheduler, so there is no job to follow",
            hint=f"name the job's site: `{bash('provision job follow %s --site NAME', args.job)}`",
        )
    scheduler = scheduler_for(site.scheduler.name)
    if not scheduler.is_job_id(args.job):
        raise ConfigError(
            f"`{args.job}` is not a valid job ID",
            hint=f"`{scheduler.QUEUE}` lists your jobs, then `provision job follow ID --site {site.typed}`",
        )
    store = read_store(site)
    again = f"provision job follow {args.job} --site {site.typed}"
    status, name = follow_to_end(args.job, again, site, store)
    wanted = _built(name)
    if wanted is not None:
        refuse_unseen(site, store, wanted, status, publish=False)
    elif status.output.startswith(f"{store.layout.jobs}/"):  # of a job of this tool, even if it left no events here
        wait_for_result(site, store, status, Path(status.output), lambda: is_file(status.output))
    text = f"job {args.job} finished" + (f" after {status.run_time}" if status.run_time else "")
    result = {"job": args.job, "state": status.state, "environment": None, "published": None, "use": None}
    # Only one that is below the root: the events are a file of the one who submitted the job.
    env = next((env for env in store.environments() if env == wanted), None)
    if env is not None:
        what = f"{'published' if is_loaded_by_users(store, env) else 'built'} by job {args.job}"
        built = built_outcome(site, store, env, what, publish=False)
        result |= {name: built.result[name] for name in ("environment", "published", "use")}
        text = "\n".join(filter(None, (text, built.text)))
    return Outcome(text=text, result=result)


def _built(name: str) -> EnvironmentId | None:
    """The environment with this name, which a file of the user has; None if it is not a name that a build writes."""
    try:
        env = EnvironmentId.parse(name)
    except ValueError:
        return None
    return env if FINGERPRINT.fullmatch(env.fingerprint) and ".." not in (env.arch, env.name) else None
