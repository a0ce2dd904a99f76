"""The checks of the image and the overlays that a user's job in a container asks for. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from provision.jobs.containers import cpu_image_problem
from provision.jobs.user_job import Decision
from provision.model.problem import Problem


def check_image(decision: Decision) -> Iterator[Problem]:
    """An image is for containers, and must support the GPUs."""
    job = decision.job
    if decision.runtime != "container":
        if job.image:
            yield Problem(
                kind="mismatch",
                subject="image",
                message="`--image` is for `--runtime container`",
                hint="add `--runtime container`",
            )
    elif job.use_gpu:
        image = job.image or (job.site.container.image if job.site.container else "")
        problem = cpu_image_problem(image, job.arch, "`--no-gpu`")
        if problem:
            yield problem


def check_overlays(decision: Decision) -> Iterator[Problem]:
    """Overlays are for containers of Apptainer."""
    job, container = decision.job, decision.job.site.container
    given = [("overlay", "--overlay")] * bool(job.overlays) + [("no-overlay", "--no-overlay")] * (not job.use_overlay)
    for subject, option in given:
        if decision.runtime != "container":
            yield Problem(
                kind="mismatch",
                subject=subject,
                message=f"`{option}` is for `--runtime container`",
                hint="add `--runtime container`",
            )
        elif container is not None and container.command == "shifter":
            yield Problem(
                kind="mismatch",
                subject=subject,
                message=f"`{option}` cannot be used: Shifter has no overlays",
                hint=f"leave `{option}` out, or `--image` with an image that has the packages in it",
            )
        elif subject == "no-overlay" and container is not None and container.overlay is None:
            yield Problem(
                kind="mismatch",
                subject=subject,
                message=f"`--no-overlay`: the containers of site `{job.site.name}` have no overlay",
                hint="leave `--no-overlay` out",
            )
