"""A user's job as text: the values of `provision.user_script` in the template of its kind."""

from __future__ import annotations

from pathlib import PurePosixPath

from provision.render import render
from provision.schedulers import dialect
from provision.user_job import UserJob
from provision.user_script import PROXIES, Script, leaves_omp, make_script


def render_user_job(job: UserJob) -> str:
    """The whole script.

    Raises:
        ConfigError: such a job cannot work at this site.
    """
    one = make_script(job)
    spoken = dialect(job.site.scheduler.name)
    return render(
        f"jobs/{job.kind}.sh.j2",
        one=one,
        site=job.site,
        spoken=spoken,
        submit=spoken.SUBMIT,
        proxies=PROXIES,
        omp_is_the_modules=leaves_omp(one),
        sif=_sif(one),
        pull=_pull(one),
    )


def _sif(one: Script) -> str:
    """Where an image of a registry lies once it is pulled: jobs do not pull."""
    name = PurePosixPath((one.image or "").removeprefix("docker://")).name.replace(":", "-")
    return f"$submit_folder/{name}.sif"


def _pull(one: Script) -> str:
    """How to pull it: the arch decides for which CPU."""
    if one.container is None or one.image is None:
        return ""
    other = " --arch arm64" if one.job.arch.target.startswith("neoverse") else ""
    return f"pull it first: {one.container.command} pull{other} $image {one.image}"
