"""Render all job scripts, for builds, users, images and overlays, from the templates of their kinds."""

from __future__ import annotations

import json
from dataclasses import replace

from provision.jobs.build_job import BuildScript
from provision.jobs.containers import image_path, pull_command
from provision.jobs.environment_script import EnvironmentScript
from provision.jobs.image_job import MANIFESTS, ImageJob, ImageScript, make_image_script
from provision.jobs.overlay_job import OverlayJob, OverlayScript, make_overlay_script
from provision.jobs.user_script import PROXIES, Script
from provision.knowledge.container_options import VARIABLES
from provision.launch.rank_threads import OMP
from provision.machine.probes.look_around import cpu_family
from provision.machine.rendering.render import render
from provision.model.quoting import printf_format
from provision.profile.site import Site
from provision.schedulers import SchedulerInterface, scheduler_for


def render_build_job(script: BuildScript, kind: str = "build") -> BuildScript:
    """The job of a build, or of one that proves environments again (`test`), with its text."""
    hidden = ("site", "settings", "text")
    values = {name: getattr(script, name) for name in BuildScript.__slots__ if name not in hidden}
    values |= _of_site(script.site, scheduler_for(script.site.scheduler.name))
    return replace(script, text=render(f"jobs/{kind}.sh.j2", **values))


def render_user_script(script: Script) -> str:
    """Render the script with these values."""
    job = script.job
    return render(
        f"jobs/{job.kind}.sh.j2",
        **_common(script, job.site),
        proxies=PROXIES,
        hiding=VARIABLES,
        omp_is_the_modules=job.arch.threads.owner == "module" and OMP not in dict(script.exports),
        image_file=image_path(job.site, script.image) if script.image else None,
        pull=pull_command(job.site, job.arch, job.image),
        record_format=_record_format(script),
        make=f"provision job overlay --site {job.site.typed} --arch {job.arch.name}",
    )


def render_environment_script(script: EnvironmentScript, *, command: str, again: str) -> str:
    """The script that becomes the Python of an environment; `again` is what to do if that is no longer published."""
    return render("jobs/environment.sh.j2", script=script, site=script.site, command=command, again=again)


def _common(script: Script | OverlayScript | ImageScript, site: Site) -> dict[str, object]:
    """What every template of a user's job gets."""
    return {"script": script, **_of_site(site, script.scheduler)}


def _of_site(site: Site, scheduler: SchedulerInterface | None) -> dict[str, object]:
    """The site and its scheduler for a template; of that only some names, because its module reaches others, such as `os`."""
    names = ("ARRAY", "BEFORE_SUBMITTING", "FIRST_NODE", "HOSTS", "JOB_ID", "STARTS_IN_SUBMIT_FOLDER", "SUBMIT_FOLDER")
    return {
        "site": site,
        "scheduler": {name: getattr(scheduler, name) for name in names} if scheduler else None,
        "submit": scheduler.SUBMIT if scheduler else None,
    }


def _record_format(script: Script) -> str:
    """A format for bash's `printf` that writes the record of a run as a JSON object. Its values: the nodes, the
    model of the GPUs, and the seconds."""
    shape = script.shape
    record = {
        "kind": script.job.kind,
        "program": " ".join((script.job.script, *script.job.arguments)),
        "nodes": shape.nodes,
        "tasks": shape.ranks,
        "cpus": shape.cpus_per_rank,
        "gpus": shape.gpus_per_node,
        **({found[0].name: ".".join(map(str, found[2]))} if (found := script.framework) else {"tensorflow": None}),
    }
    pairs = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in record.items()]
    return "{" + printf_format(", ".join(pairs)) + ', "hosts": "%s", "gpu": "%s", "seconds": %d}\\n'


def render_overlay_job(job: OverlayJob) -> str:
    """Render the whole script.

    Raises:
        ConfigError: the site cannot make such an overlay.
    """
    script = make_overlay_script(job, cpu_family())
    pulled = script.image != script.container.image
    return render(
        "jobs/own-overlay.sh.j2" if job.requirements else "jobs/overlay.sh.j2",
        **_common(script, job.site),
        pull=f"; pull it first: {pull_command(job.site, job.arch, None)}" if pulled else "",
        make=f"provision job overlay --site {job.site.typed} --arch {job.arch.name}",
    )


def render_image_job(job: ImageJob) -> str:
    """Render the whole script.

    Raises:
        ConfigError: there is no image to pull, or no network to pull it.
    """
    script = make_image_script(job, cpu_family())
    return render("jobs/image.sh.j2", **_common(script, job.site), manifests=MANIFESTS)
