"""A site's containers: the paths of image files, the command that pulls one, and images without GPU support. Pure."""

from __future__ import annotations

import shlex

from provision.errors import ConfigError, Fault
from provision.knowledge.images import parse_reference, sees_no_gpu
from provision.profile.arch import Arch
from provision.profile.container import Container
from provision.profile.site import Site


def container_of(site: Site, what: str) -> Container:
    """The site's containers.

    Raises:
        ConfigError: the site has none; `what` is the thing that needs them.
    """
    if site.container is None or "container" not in site.runtimes:
        raise ConfigError(
            f"site `{site.name}` runs no containers, so there is no use for {what}",
            evidence=[f"`runtimes` in `{site.origin}`: {', '.join(site.runtimes)}"],
            hint=f"describe `[container]` in `{site.origin}`, and name `container` in its `runtimes`",
        )
    return site.container


def no_network(site: Site, what: str) -> ConfigError:
    """The error for a job that downloads, at a site of which no node reaches the source: `what`."""
    return ConfigError(
        f"no node of site `{site.name}` reaches {what}",
        evidence=[f"`network.login` and `network.compute` in `{site.origin}` are `no`"],
        hint=f"name the host that does: `network.download_node` in `{site.origin}`",
    )


def images_folder(site: Site) -> str:
    """The folder of pulled images, for bash: on the file system of the jobs."""
    return f"{site.files.scratch or '$submit_folder'}/images"


def image_path(site: Site, image: str) -> str:
    """The path of an image's file, for bash. An image of a registry is pulled to a file before the job."""
    reference = parse_reference(image)
    return image if reference is None else f"{images_folder(site)}/{reference.stem}.sif"


def pull_command(site: Site, arch: Arch, image: str | None) -> str:
    """The command that writes the script that pulls an image; None: the site's image."""
    other = f" --image {shlex.quote(image)}" if image else ""
    return f"provision job image --site {site.typed} --arch {arch.name}{other}"


def cpu_image_fault(image: str, arch: Arch, otherwise: str) -> Fault | None:
    """Why an image without GPU support cannot be used on an arch with GPUs; `otherwise` is another way out, for the hint."""
    if arch.gpu is None or not sees_no_gpu(image):
        return None
    return Fault(
        "mismatch",
        "image",
        f"the image `{image}` has no GPU support, but arch `{arch.name}` has GPUs",
        evidence=("tags of tensorflow/tensorflow that do not end in `-gpu` are for CPUs",),
        hint=f"`--image docker://tensorflow/tensorflow:2.15.0-gpu` or another tag with `-gpu`, or {otherwise}",
    )
