"""The images that a site's containers run: where their files are, and the script that pulls one of a registry. Pure.

The template is `jobs/image.sh.j2`. A tag moves on: what is pulled is the digest that the registry says for it, which is in
the file's name.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from provision.errors import ConfigError
from provision.jobs.limits import refuse
from provision.jobs.user_job import refuse_cpu_image
from provision.jobs.user_script import header, module_lines
from provision.knowledge.images import DOCKER, Reference, parse_reference
from provision.knowledge.targets import machine
from provision.model.batch import Batch
from provision.profile.arch import Arch
from provision.profile.container import Container
from provision.profile.patterns import TIME
from provision.profile.site import Site
from provision.schedulers import scheduler_for

# As the manifests of an image are called that registries serve: an index of several CPUs, or one image.
MANIFESTS = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
# Apptainer's words for what `uname -m` says.
CPUS = {"aarch64": "arm64", "x86_64": "amd64", "ppc64le": "ppc64le"}
CORES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageJob:
    """What somebody asked for; without `image` it is the site's."""

    site: Site
    arch: Arch
    command: str
    image: str | None = None
    time: str = "01:00:00"
    account: str | None = None
    queue: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageScript:
    """The values of the script's template; no `header` where compute nodes have no network."""

    job: ImageJob
    container: Container
    reference: Reference
    header: tuple[str, ...]
    modules: tuple[str, ...]
    folder: str
    uname: str
    cpu: str
    where: str | None
    manifest: str


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


def side_batch(
    site: Site, arch: Arch, name: str, *, time: str, cpus: int, account: str | None, queue: str | None
) -> Batch:
    """A job that prepares something: a part of one node, without GPUs where the site has such nodes of the same CPU.

    Raises:
        ConfigError: the site would not take it.
    """
    if not TIME.fullmatch(time):
        raise ConfigError(f"`--time {time}` is no time", hint="`--time 01:00:00`")
    found = next((one for one in site.archs if one.gpu is None and one.target == arch.target), arch)
    said = found.job
    by_qos = said.qos is not None and said.partition is None
    batch = Batch(
        scheduler=site.scheduler,
        name=name,
        output=scheduler_for(site.scheduler.name).output_path(".", name),
        nodes=1,
        ranks_per_node=1,
        time=time,
        partition=said.partition if by_qos else queue or said.partition,
        constraint=said.constraint,
        account=account or said.account,
        qos=queue or said.qos if by_qos else said.qos,
        exclusive=False,
        cpus_per_rank=cpus,
        memory=said.memory,
        filesystems=said.filesystems,
        umask=site.files.umask,
        options=said.options,
    )
    refuse(site, found, batch)
    return batch


def make_image_script(job: ImageJob) -> ImageScript:
    """Everything that the template needs.

    Raises:
        ConfigError: there is nothing to pull, it would see no GPU, or no node of the site reaches a registry.
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
            f"`{image}` is no name of an image in a registry",
            hint="`docker://REGISTRY/REPOSITORY:TAG`, as in `docker://nvcr.io/nvidia/tensorflow:25.02-tf2-py3`",
        )
    refuse_cpu_image(image, arch, "an arch without GPUs")
    network = site.network
    in_job = network.compute != "no" and site.scheduler.name != "none"
    if network.where_to_download is None and not in_job:
        raise ConfigError(
            f"no node of site `{site.name}` reaches a registry",
            evidence=[f"`network.login` and `network.compute` in `{site.origin}` are `no`"],
            hint=f"name the host that does: `network.download_node` in `{site.origin}`",
        )
    lines: tuple[str, ...] = ()
    if in_job:
        scheduler = scheduler_for(site.scheduler.name)
        batch = side_batch(
            site, arch, f"image-{arch.name}", time=job.time, cpus=CORES, account=job.account, queue=job.queue
        )
        lines = header(scheduler.directives(batch), scheduler.COMMENTS_BEHIND)
    uname = machine(arch.target)
    return ImageScript(
        job=job,
        container=container,
        reference=reference,
        header=lines,
        modules=module_lines(site.modules, (container.module,)) if container.module else (),
        folder=images_folder(site),
        uname=uname,
        cpu=CPUS.get(uname, uname),
        where=network.where_to_download,
        manifest=f"https://{reference.registry}/v2/{reference.repository}/manifests/{reference.tag}",
    )
