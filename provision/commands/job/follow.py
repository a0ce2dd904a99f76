"""`provision job follow ID`: show the job of a build or of a user until it ends."""

from __future__ import annotations

import argparse

from provision.commands.shared.built import describe_built, is_loaded_by_users, load_command
from provision.commands.shared.following import stopped_following
from provision.commands.shared.options import add_site
from provision.commands.shared.outcome import Outcome
from provision.commands.shared.parsers import SubVerb
from provision.commands.shared.target import read_store
from provision.errors import ConfigError
from provision.machine.terminal.console import listener


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the argument that names the job."""
    parser.add_argument("job", metavar="ID", help="the ID of the job, as the scheduler gave it")
    add_site(parser)


def run(args: argparse.Namespace) -> Outcome:
    """Follow the job to its end; Ctrl-C leaves it running."""
    from provision.machine.configuration import shipped
    from provision.machine.submission import remove_left_settings
    from provision.machine.terminal.follow import follow
    from provision.model.event import Event
    from provision.schedulers import scheduler_for

    site = shipped.load_site(args.site)
    if site.scheduler.name == "none":
        raise ConfigError(
            f"site `{site.name}` has no scheduler, so there is no job to follow",
            hint=f"name the job's site: `provision job follow {args.job} --site SITE`",
        )
    scheduler = scheduler_for(site.scheduler.name)
    if not scheduler.is_job_id(args.job):
        raise ConfigError(
            f"`{args.job}` is not a valid job ID",
            hint=f"`{scheduler.QUEUE}` lists your jobs, then `provision job follow ID --site {args.site}`",
        )
    store = read_store(site)
    name = ""
    try:
        with listener() as listen:

            def note(event: Event) -> None:
                nonlocal name
                name = event.environment if event.kind == "plan" else name
                listen(event)

            status = follow(args.job, site.scheduler.name, store, note)
    except KeyboardInterrupt:
        raise stopped_following(args.job, f"provision job follow {args.job} --site {args.site}", site) from None
    finally:
        remove_left_settings(store, site.scheduler.name)
    text = f"job {args.job} finished after {status.run_time}"
    result = {"job": args.job, "state": status.state, "environment": None, "published": None, "use": None}
    # Only one that is below the root: the events are a file of the one who submitted the job.
    env = next((env for env in store.environments() if str(env) == name), None)
    if env is not None and store.record(env) is not None:
        published = is_loaded_by_users(store, env)
        use = load_command(site, store, env, candidate=not published)
        what = f"{'published' if published else 'built'} by job {args.job}"
        described = describe_built(site, store, env, what, use=use, published=published)
        result |= {name: described[name] for name in ("environment", "published", "use")}
        text = f"{text}\n{use}" if use else text
    return Outcome(text=text, result=result)


SUBVERBS = (SubVerb(name="follow", purpose="follow a job to its end", add_arguments=add_arguments, run=run),)
