"""`provision job build`: the script of the job that builds, proves and publishes an environment."""

from __future__ import annotations

import argparse

from provision.commands.shared.outcome import Outcome
from provision.commands.shared.target import read_target
from provision.jobs.build_job import build_script, profile_script
from provision.machine.submission.render_jobs import render_build_job
from provision.machine.submission.submit import keep_settings, remove_left_settings, submitter
from provision.machine.terminal.console import say


def run(args: argparse.Namespace) -> Outcome:
    """Write the script with the plan for this machine, or from the profile alone."""
    target = read_target(args)
    if args.profile:
        alone = profile_script(target.site, target.arch, target.stack, submitter(target.store), args.account)
        job = render_build_job(alone)
        return Outcome(text=job.text, result={"name": job.name, "script": job.text, "environment": None})
    facts = target.observe()
    request = target.request(facts)
    plan = target.plan(request, facts)
    job = render_build_job(build_script(request, plan, submitter(target.store), args.account))
    # sbatch does not make the folder of a job's output; without the folder the job fails without a message.
    target.store.make_jobs()
    remove_left_settings(target.store, job.scheduler)
    if job.settings_file:
        keep_settings(job)
        say(
            f"the job reads the settings of the package index from `{job.settings_file}` and removes this file at its end; "
            "another job of this script uses the settings of its own environment; if you do not submit the job, remove the "
            "file yourself"
        )
    return Outcome(text=job.text, result={"name": job.name, "script": job.text, "environment": str(plan.environment)})
