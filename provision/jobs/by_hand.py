"""How a user gets what a job needs, and runs its program without a job, for hints. Pure."""

from __future__ import annotations

from provision.jobs.user_job import Decision, UserJob
from provision.model.quoting import quote_sh


def run_by_hand(decision: Decision) -> str:
    """How to run the program at a site without a scheduler."""
    job, site, arch = decision.job, decision.job.site, decision.job.arch
    if decision.runtime != "venv":
        return f"name a site that has one: `provision job {job.kind} --site SITE`"
    if job.activate is None:
        return get_environment(job)
    if site.modules.name == "none":
        load = f'eval "$(provision activate --site {site.typed} --arch {arch.name} {quote_sh(job.module)})"'
    else:
        load = site.modules.load_command(job.modulepath, job.module)
    ranks = f"{arch.launcher.name} -n 2 " if job.kind in ("horovod", "mpi") else ""
    return f"`{load}`, then `{ranks}python {quote_sh(job.script)}`"


def get_environment(job: UserJob) -> str:
    """How to get the environment of a job that is not published: a module that was named may be of any stack."""
    if job.stack is None:
        return f"`provision list --site {job.site.typed}` lists the modules that there are"
    build = f"provision build --site {job.site.typed} --arch {job.arch.name} --stack {quote_sh(job.stack)}"
    return f"`{build}` builds it and prints the command that loads it"
