"""What a site provides beside modules to build with: its own TensorFlow modules, and its container."""

from __future__ import annotations

import dataclasses
import shutil

from provision.machine.disk import exists
from provision.machine.probes.probe import Probes
from provision.machine.programs.shell import expand_home
from provision.model.problem import Problem
from provision.profile.arch import Arch
from provision.profile.container import Container
from provision.profile.site import Site


def provided_problems(site: Site, arch: Arch) -> tuple[Problem, ...]:
    """The modules of `provided` that cannot be loaded here; jobs with `--runtime modules` load them."""
    provided = dataclasses.replace(arch, modules=arch.provided, unload=arch.provided_unload)
    probes = Probes(site, provided, key="provided")
    probes.environment()
    return tuple(probes.problems)


def container_problems(container: Container, origin: str) -> tuple[Problem, ...]:
    """The program, the image, the overlay and the templates of overlays that are not on this machine.

    An image of a registry (`docker://`) and paths of a user (`$USER`, `$SCRATCH`) are not searched.
    """
    problems = []
    if container.module is None and shutil.which(container.command) is None:
        problems.append(
            _missing(
                "container.command",
                f"`{container.command}` is not on PATH",
                f'set `container.module = "{container.command}"` in `{origin}` if a module provides it',
            )
        )
    paths = [("container.image", container.image)] if not container.image.startswith("docker://") else []
    paths += [("container.overlay", container.overlay)] if container.overlay else []
    paths += [("container.overlay_templates", template.path) for template in container.overlay_templates]
    for key, path in paths:
        if path.startswith("/") and "$" not in path and not exists(expand_home(path)):
            making = "; `provision job overlay` makes it" if key == "container.overlay" else ""
            problems.append(_missing(key, f"`{path}` does not exist", f"set `{key}` in `{origin}`{making}"))
    return tuple(problems)


def _missing(subject: str, message: str, hint: str) -> Problem:
    return Problem(kind="missing", subject=subject, message=message, hint=hint)
