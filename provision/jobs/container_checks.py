"""The checks of the image and the overlays that a user's job in a container asks for. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from provision.errors import Fault
from provision.jobs.containers import cpu_image_fault, pull_command
from provision.jobs.user_job import Decision, UserJob
from provision.knowledge.frameworks import FRAMEWORKS, image_framework
from provision.knowledge.frameworks.tensorflow import TENSORFLOW
from provision.knowledge.images import DOCKER
from provision.profile.container import Container

# An image with Horovod for TensorFlow, built with Open MPI (github.com/horovod/horovod, docker/horovod/Dockerfile of 0.28.1).
EXAMPLE_WITH_HOROVOD = "docker://horovod/horovod:0.28.1"


def check_image(decision: Decision) -> Iterator[Fault]:
    """An image is for containers, and must support the GPUs."""
    job = decision.job
    if decision.runtime != "container":
        if job.image:
            yield Fault("mismatch", "image", "`--image` is for `--runtime container`", hint="add `--runtime container`")
    elif job.use_gpu:
        image = job.image or (job.site.container.image if job.site.container else "")
        fault = cpu_image_fault(image, job.arch, "`--no-gpu`")
        if fault:
            yield fault


def check_overlays(decision: Decision) -> Iterator[Fault]:
    """Overlays are for containers of Apptainer."""
    job, container = decision.job, decision.job.site.container
    given = [("overlay", "--overlay")] * bool(job.overlays) + [("no-overlay", "--no-overlay")] * (not job.use_overlay)
    for subject, option in given:
        if decision.runtime != "container":
            yield Fault(
                "mismatch", subject, f"`{option}` is for `--runtime container`", hint="add `--runtime container`"
            )
        elif container is not None and container.command == "shifter":
            message = f"`{option}` cannot be used: Shifter has no overlays"
            hint = f"leave `{option}` out, or `--image` with an image that has the packages in it"
            yield Fault("mismatch", subject, message, hint=hint)
        elif subject == "no-overlay" and container is not None and container.overlay is None:
            message = f"`--no-overlay`: the containers of site `{job.site.name}` have no overlay"
            yield Fault("mismatch", subject, message, hint="leave `--no-overlay` out")


def check_framework(decision: Decision) -> Iterator[Fault]:
    """The container must have the framework of this kind of job, as far as the image's name and our overlay show it."""
    job, container = decision.job, decision.job.site.container
    if job.kind == "mpi" or decision.runtime != "container" or container is None:
        return
    image, ours = job.image or container.image, _has_our_overlay(job, container)
    inside = TENSORFLOW if ours else image_framework(image)
    if inside is None or job.kind in inside.kinds:
        return
    others = [one for one in FRAMEWORKS.values() if job.kind in one.kinds]
    yield Fault(
        "mismatch",
        "image",
        f"`{job.kind}` is not a kind of job for {inside.title}, which is in "
        + (f"the overlay of site `{job.site.name}`" if ours else f"the image `{image}`"),
        evidence=(
            *(("`provision job overlay` puts TensorFlow into it; `--overlay FILE` mounts your own over it",) * ours),
            f"kinds for {inside.title}: {', '.join(inside.kinds)}",
        ),
        hint=" or ".join(f"`--image {one.image}{' --no-overlay' * bool(container.overlay)}`" for one in others),
    )


def _has_our_overlay(job: UserJob, container: Container) -> bool:
    """Whether the job mounts only the overlay that `provision job overlay` makes, so that its contents are known."""
    mounted = container.overlay is not None and job.use_overlay and not job.overlays
    return mounted and bool(container.overlay_templates)


def check_horovod(decision: Decision) -> Iterator[Fault]:
    """The overlay that `provision job overlay` makes has no Horovod, and it hides the one of an image.

    Our locks of overlays have none: it would have to be compiled against an MPI inside the image. What is in an overlay of the
    user, or in one that the site has ready (no templates to make it from), is not known; the job asks it before the ranks start.
    """
    job = decision.job
    container = job.site.container
    if job.kind != "horovod" or decision.runtime != "container" or container is None:
        return
    if not _has_our_overlay(job, container):
        return
    image = job.image or EXAMPLE_WITH_HOROVOD
    pull = pull_command(job.site, job.arch, image) if image.startswith(DOCKER) else None
    yield Fault(
        "missing",
        "horovod",
        f"the overlay of site `{job.site.name}` has no Horovod"
        + (f", and it hides the one of `{job.image}`" if job.image else ""),
        evidence=(
            f"`provision job overlay` puts TensorFlow into `{container.overlay}`; Horovod needs an MPI in the image",
            *((f"`{pull}` writes the script that fetches the image",) if pull else ()),
            "`--overlay FILE` mounts your own overlay, if Horovod is in it",
            f"without Horovod, on one node: `provision job mirrored --site {job.site.typed} --arch {job.arch.name}`",
        ),
        hint=f"`--image {image} --no-overlay` uses the Horovod of that image",
    )
