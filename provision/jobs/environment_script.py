"""The values of a script that becomes the Python of an environment, for programs that load no modules, such as Jupyter. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from provision.jobs.containers import container_of, image_path
from provision.jobs.script import module_lines, provided_lines
from provision.model.quoting import Code
from provision.profile.arch import Arch
from provision.profile.container import Container
from provision.profile.site import Site


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentScript:
    """What the template needs: lines that load modules, or a file to source, or a container; and the Python to become.

    `environment` must be loaded after these lines.
    """

    site: Site
    modules: tuple[Code, ...] = ()
    activate: str | None = None
    environment: str | None = None
    python: str = "python"
    venv: str | None = None
    """The venv of the Python, whose programs are to be found first."""
    container: Container | None = None
    image: str | None = None
    overlays: tuple[str, ...] = ()
    program: str | None = None
    """The program to run, if the script does not take one from its command line."""


def in_environment(
    site: Site, *, environment: str, module: str, modulepath: str, activate: str, prefix: str, venv: str | None
) -> EnvironmentScript:
    """The script for a published environment: through its module, or without a module system through its activation script.

    `venv` is an own venv on it.
    """
    name = environment.split("/")[0]
    arch = next((one for one in site.archs if one.name == name), site.archs[0] if len(site.archs) == 1 else None)
    return EnvironmentScript(
        site=site,
        modules=module_lines(site.modules, (module,), away=arch.unload if arch else (), path=(modulepath,)),
        activate=activate if site.modules.name == "none" else None,
        environment=environment,
        python=f"{venv or prefix}/bin/python",
        venv=venv,
    )


def on_modules(site: Site, arch: Arch, *, modules: tuple[str, ...], venv: str | None = None) -> EnvironmentScript:
    """The script for modules of the site that bring TensorFlow, or for an own venv on them."""
    return EnvironmentScript(
        site=site,
        modules=provided_lines(site, arch, modules),
        python=f"{venv}/bin/python" if venv else "python",
        venv=venv,
    )


def in_container(
    site: Site, *, image: str | None, overlays: tuple[str, ...], program: str | None = None
) -> EnvironmentScript:
    """The script for the site's container, or another image; `overlays` are mounted over the site's.

    Raises:
        ConfigError: the site has no containers.
    """
    container = container_of(site, "a kernel in a container")
    return EnvironmentScript(
        site=site,
        modules=module_lines(site.modules, (container.module,)) if container.module else (),
        container=container,
        image=image_path(site, image or container.image),
        overlays=tuple(path for path in (container.overlay, *overlays) if path),
        program=program,
    )
