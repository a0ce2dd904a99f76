"""The script that pulls an image from a registry for a site's containers. Pure.

The template is `jobs/image.sh.j2`. Tags move: the script pulls the digest that the registry gives for the tag, and the name
of the file contains the digest.
"""

from __future__ import annotations

from dataclasses import dataclass

from provision.errors import ConfigError, raise_faults
from provision.jobs.containers import container_of, cpu_image_fault, images_folder, no_network
from provision.jobs.scheduler_request import SideJob, side_batch
from provision.jobs.script import explain, module_lines
from provision.knowledge.images import DOCKER, Reference, parse_reference
from provision.knowledge.targets import family_of
from provision.model.quoting import Code
from provision.profile.container import Container
from provision.schedulers import SchedulerInterface, scheduler_for

# The media types of the manifests that registries serve: an index of images for several CPUs, or one image.
MANIFESTS = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
# Apptainer's names of the CPUs that `uname -m` prints.
CPUS = {"aarch64": "arm64", "x86_64": "amd64", "ppc64le": "ppc64le"}
CORES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageJob(SideJob):
    """What a user asked for; without `image` it is the site's image."""

    image: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageScript:
    """The values of the script's template; `header` is empty if compute nodes have no network."""

    job: ImageJob
    scheduler: SchedulerInterface | None
    container: Container
    reference: Reference
    header: tuple[Code, ...]
    meanings: tuple[Code, ...]
    modules: tuple[Code, ...]
    folder: str
    uname: str
    cpu: str
    where: str | None
    manifest: str
    sees_gpus: bool


def make_image_script(job: ImageJob, cpu_family: str) -> ImageScript:
    """Everything that the template needs.

    Raises:
        ConfigError: there is nothing to pull, the image has no GPU support, or no node of the site reaches a registry.
    """
    site, arch = job.site, job.arch
    container = container_of(site, "an image")
    image = job.image or container.image
    if container.command == "shifter":
        raise ConfigError(
            f"shifter keeps the images of site `{site.name}` itself",
            hint=f"there: `shifterimg pull {image.removeprefix(DOCKER)}`",
        )
    if not image.startswith(DOCKER):
        raise ConfigError(
            f"there is nothing to pull: the image `{image}` is a file",
            evidence=["`--image`" if job.image else f"`container.image` in `{site.origin}`"],
            hint="`--image docker://tensorflow/tensorflow:2.15.0-gpu` pulls another",
        )
    reference = parse_reference(image)
    if reference is None:
        raise ConfigError(
            f"`{image}` is not a valid name of an image in a registry",
            hint="`docker://REGISTRY/REPOSITORY:TAG`, as in `docker://nvcr.io/nvidia/tensorflow:25.02-tf2-py3`",
        )
    fault = cpu_image_fault(image, arch, "an arch without GPUs")
    raise_faults((fault,) if fault else (), ConfigError)
    network = site.network
    scheduler = None if site.scheduler.name == "none" else scheduler_for(site.scheduler.name)
    in_job = network.compute != "no" and scheduler is not None
    if network.where_to_download is None and not in_job:
        raise no_network(site, "a registry")
    batch = side_batch(job, "image", CORES) if in_job else None
    lines, explained = explain(scheduler, batch) if scheduler and batch else ((), ())
    uname = family_of(arch.target, cpu_family)
    return ImageScript(
        job=job,
        scheduler=scheduler,
        container=container,
        reference=reference,
        header=lines,
        meanings=explained,
        modules=module_lines(site.modules, (container.module,)) if container.module else (),
        folder=images_folder(site),
        uname=uname,
        cpu=CPUS.get(uname, uname),
        where=network.where_to_download,
        manifest=f"https://{reference.registry}/v2/{reference.repository}/manifests/{reference.tag}",
        sees_gpus=batch is not None and batch.gpus_per_node > 0,
    )
