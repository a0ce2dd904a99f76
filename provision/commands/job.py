"""`provision job`: a build job's script on stdout (`build`), or a job followed to its end (`follow`)."""

from __future__ import annotations

import argparse

from provision.commands import Outcome, add_target, read_store, read_target
from provision.console import listener
from provision.errors import ConfigError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The kind of job, and what it is about."""
    parser.add_argument("kind", choices=("build", "follow"))
    parser.add_argument("job", nargs="?", help="with follow: the job's id")
    add_target(parser)


def run(args: argparse.Namespace) -> Outcome:
    """Write the script, or follow."""
    return _follow(args) if args.kind == "follow" else _build(args)


def _build(args: argparse.Namespace) -> Outcome:
    from provision.job import build_job
    from provision.planner import make_plan

    if args.job:
        raise ConfigError(f"`job build` takes no job id, and was given `{args.job}`")
    target = read_target(args)
    facts = target.observe()
    request = target.request(facts)
    plan = make_plan(request, facts, target.store.existing())
    job = build_job(request, plan, target.store)
    # sbatch does not make the folder of a job's output, and a job without one vanishes without a word.
    target.store.make_jobs()
    return Outcome(text=job.text, result={"name": job.name, "script": job.text, "environment": str(plan.environment)})


def _follow(args: argparse.Namespace) -> Outcome:
    from provision import shipped
    from provision.commands.build import left
    from provision.job import follow
    from provision.schedulers import dialect

    site = shipped.load_site(args.site)
    if site.scheduler.name == "none":
        raise ConfigError(f"site `{site.name}` has no scheduler, there is no job to follow", hint="add `--site SITE`")
    spoken = dialect(site.scheduler.name)
    if not args.job or not spoken.is_job_id(args.job):
        raise ConfigError(
            "`job follow` needs the id of a job", hint=f"`{spoken.QUEUE}`, then `provision job follow ID`"
        )
    store = read_store(site)
    try:
        with listener() as listen:
            status = follow(args.job, site.scheduler.name, store, listen)
    except KeyboardInterrupt:
        raise left(args.job, f"provision job follow {args.job} --site {args.site}", site) from None
    return Outcome(
        text=f"job {args.job} finished after {status.run_time}", result={"job": args.job, "state": status.state}
    )
