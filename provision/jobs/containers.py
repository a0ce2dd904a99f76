"""A site's containers: where the files of images are, which command pulls one, and which images see no GPU. Pure."""

from __future__ import annotations

import shlex

from provision.errors import ConfigError
from provision.knowledge.images import parse_reference, sees_no_gpu
from provision.model.problem import Problem
from provision.profile.arch import Arch
from provision.profile.container import Container
from provision.profile.site import Site


def container_of(site: Site, what: str) -> Container:
    """The site's containers.

    Raises:
        ConfigError: it has none; `what` is for them.
    """
    if site.container is None or "container" not in site.runtimes:
        raise ConfigError(
            f"site `{site.name}` runs no containers, and {what} is for them",
            evidence=[f"`runtimes` in `{site.origin}`: {', '.join(site.runtimes)}"],
            hint=f"describe `[container]` in `{site.origin}`, and name `container` in its `runtimes`",
        )
    return site.container


def images_folder(site: Site) -> str:
    """Where pulled images are, as bash reads it: on the file system that jobs see."""
    return f"{site.files.scratch or '$submit_folder'}/images"


def image_path(site: Site, image: str) -> str:
    """Where the file of an image is, as bash reads it: that of a registry is pulled before a job."""
    reference = parse_reference(image)
    return image if reference is None else f"{images_folder(site)}/{reference.stem}.sif"


def pull_command(site: Site, arch: Arch, image: str | None) -> str:
    """What writes the script that pulls an image; None: the site's."""
    other = f" --image {shlex.quote(image)}" if image else ""
    return f"provision job image --site {site.typed} --arch {arch.name}{other}"


def cpu_image_problem(image: str, arch: Arch, otherwise: str) -> Problem | None:
    """Why an image cannot be used on an arch with GPUs, if it sees none; `otherwise` is what goes with such an image."""
    if arch.gpu is None or not sees_no_gpu(image):
        return None
    return Problem(
        kind="mismatch",
        subject="image",
        message=f"the image `{image}` has no GPU support, but arch `{arch.name}` has GPUs",
        evidence=("tags of tensorflow/tensorflow that do not end in `-gpu` are for CPUs",),
        hint=f"`--image docker://tensorflow/tensorflow:2.15.0-gpu` or another tag with `-gpu`, or {otherwise}",
    )
