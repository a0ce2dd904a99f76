"""The job that makes an overlay for a site's containers, with TensorFlow or with a user's packages. Pure.

The template is `jobs/overlay.sh.j2`, and `jobs/own-overlay.sh.j2` for a user's packages: a second, small overlay that is
mounted over the one with TensorFlow. Apptainer puts a writable overlay above all others, and of several read-only ones the
last above those before it (its `addOverlayMount` and `AddLowerDir`, read in 2026-11).

Miniforge provides Python, because images with CUDA may have none; the script compares its checksum. The packages are those of
our lock `overlay-<stack>`, with their hashes. One overlay is for all archs of a site: it contains the TensorFlow that uses
GPUs, which also runs without one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from provision.errors import ConfigError
from provision.jobs.containers import container_of, image_path, no_network, pull_command
from provision.jobs.scheduler_request import SideJob, side_batch
from provision.jobs.script import explain, module_lines
from provision.knowledge.cuda import gpu_obstacle
from provision.knowledge.frameworks.tensorflow import TENSORFLOW
from provision.knowledge.miniforge import Miniforge
from provision.knowledge.targets import family_of
from provision.model.lock import Lock
from provision.model.quoting import Code, words
from provision.model.requirements_file import Requirements
from provision.profile.container import Container, Template
from provision.profile.stack import Framework
from provision.schedulers import SchedulerInterface, scheduler_for

# 4.7 GB in 35,000 files for TensorFlow 2.15.1 with CUDA and 6.5 GB in 43,000 for 2.21.0, as measured, then Miniforge, and
# room for the user's own packages.
NEEDED_GB = 9
NEEDED_FILES = 100_000
# A user's own packages are a few; `--gb` and `--files` request more space.
OWN_GB = 1
OWN_FILES = 50_000
CPUS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlayJob(SideJob):
    """What a user asked for; `gb` and `files` are the space that the overlay must have.

    With `requirements` it is an overlay with these packages, at `path`, over the one with TensorFlow.
    """

    framework: Framework
    lock: Lock
    miniforge: Miniforge
    gb: int = NEEDED_GB
    files: int = NEEDED_FILES
    cpus: int = CPUS
    requirements: Requirements | None = None
    path: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlayScript:
    """The values of the job's template."""

    job: OverlayJob
    scheduler: SchedulerInterface
    container: Container
    template: Template
    header: tuple[Code, ...]
    meanings: tuple[Code, ...]
    modules: tuple[Code, ...]
    overlay: str
    packages: str
    """The name of the folder of packages: every overlay of the same packages uses the same."""
    image: str
    prefix: str
    url: str
    sha256: str
    write: Code
    read: Code
    where: str
    """The host that downloads, for a sentence: "on …". `write` and `read` are the commands that run a program in the
    container, up to the image."""


def lock_name(stack: str) -> str:
    """The name of the requirements of an overlay with this stack (`requirements/<name>.in`), the same with and without GPUs."""
    return f"overlay-{stack.removesuffix('-gpu')}"


def make_overlay_script(job: OverlayJob, cpu_family: str) -> OverlayScript:
    """Everything that the template needs.

    Raises:
        ConfigError: the site has no overlays, no template that is large enough, or nowhere to download.
    """
    site = job.site
    container = container_of(site, "an overlay")
    if container.overlay is None or container.setup is None:
        raise ConfigError(
            f"the containers of site `{site.name}` have no overlay",
            evidence=[f"`container.overlay` in `{site.origin}` is left out"],
            hint=f"`{pull_command(site, job.arch, TENSORFLOW.image)}` pulls an image that has TensorFlow in it",
        )
    if site.scheduler.name == "none":
        raise ConfigError(f"site `{site.name}` has no scheduler, so there is no job to write", hint="add `--site SITE`")
    uname = family_of(job.arch.target, cpu_family)
    if uname not in job.miniforge.sha256:
        raise ConfigError(
            f"the checksum of Miniforge {job.miniforge.version} for {uname} is not known",
            evidence=[f"arch `{job.arch.name}` is {job.arch.target}"],
            hint="another `--stack`, or an image that has TensorFlow in it",
        )
    gpu = job.arch.gpu
    obstacle = (
        gpu_obstacle(job.framework.interface, job.framework.version, uname, gpu.capabilities)
        if gpu and not job.requirements
        else None
    )
    if obstacle and obstacle[1]:
        raise ConfigError(
            f"{job.framework.title} in an overlay cannot use the GPUs of arch `{job.arch.name}`: it {obstacle[0]}",
            evidence=[f"`archs.{job.arch.name}.target` and `.gpu.capabilities` in `{site.origin}`"],
            hint=f"`{pull_command(site, job.arch, TENSORFLOW.image)}` pulls an image that has TensorFlow for newer GPUs in it",
        )
    where = site.network.where_to_download
    if site.network.compute == "no" and where is None:
        raise no_network(site, "the network, which an overlay needs")
    scheduler = scheduler_for(site.scheduler.name)
    own = job.requirements
    header, meanings = explain(scheduler, side_batch(job, "packages" if own else "overlay", job.cpus))
    names = (container.module,) if container.module else ()
    base = ("--overlay", Code('"$base:ro"')) if own else ()
    return OverlayScript(
        job=job,
        scheduler=scheduler,
        container=container,
        template=container.template(job.gb, job.files, site.origin),
        header=header,
        meanings=meanings,
        modules=module_lines(site.modules, names),
        overlay=(job.path if own else None) or container.overlay,
        packages=f"{own.sha256[:8]}-{job.lock.sha256[:8]}" if own else job.lock.sha256[:12],
        image=image_path(site, container.image),
        prefix=str(PurePosixPath(container.setup).parent),
        url=job.miniforge.url(uname),
        sha256=job.miniforge.sha256[uname],
        write=_inside(
            container,
            *container.write_options,
            "--bind",
            Code('"$packages"'),
            *base,
            overlay=Code('"$building/overlay.ext3"'),
        ),
        read=_inside(
            container,
            *(("--bind", Code('"$packages"'), *base) if own else ()),
            overlay=Code('"$building/overlay.ext3:ro"'),
        ),
        where=where or "a node with network",
    )


def _inside(container: Container, *options: str, overlay: Code) -> Code:
    return words((container.command, "exec", *container.options, *options, "--overlay", overlay))
