"""`provision job follow ID`: show the job of a build or of a user until it ends."""

from __future__ import annotations

import argparse

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
    try:
        with listener() as listen:
            status = follow(args.job, site.scheduler.name, store, listen)
    except KeyboardInterrupt:
        raise stopped_following(args.job, f"provision job follow {args.job} --site {args.site}", site) from None
    finally:
        remove_left_settings(store, site.scheduler.name)
    return Outcome(
        text=f"job {args.job} finished after {status.run_time}", result={"job": args.job, "state": status.state}
    )


SUBVERBS = (SubVerb(name="follow", purpose="follow a job to its end", add_arguments=add_arguments, run=run),)
