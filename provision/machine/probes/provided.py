"""What a site provides beside modules to build with: its own modules with a framework, and its container."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from provision.errors import Fault, PlanError, raise_faults
from provision.jobs.containers import image_path, pull_command
from provision.knowledge.images import DOCKER
from provision.machine.files.disk import exists
from provision.machine.probes.loaded_modules import as_here
from provision.machine.probes.probe import Probes
from provision.machine.programs.run import capture
from provision.machine.programs.shell import expand_home, expand_variables
from provision.model.check import Check, State, observed
from provision.model.lock import normalized
from provision.profile.arch import Arch
from provision.profile.container import Container
from provision.profile.site import Site

_seen = partial(observed, "container")
# Printed by the Python of modules: its version, its prefix, the folders on its path that have packages, and the packages. It
# runs on Python 3.6 too, which has pkg_resources only.
PACKAGES = """
import json, os, sys
try:
    from importlib import metadata
    found = [(one.metadata["Name"], one.version) for one in metadata.distributions()]
except ImportError:
    import pkg_resources
    found = [(one.project_name, one.version) for one in pkg_resources.working_set]
packages = {}
for name, version in found:
    packages.setdefault(name, version)
packages.pop(None, None)
has = lambda folder: any(name.endswith((".dist-info", ".egg-info")) for name in os.listdir(folder))
folders = [folder for folder in sys.path if os.path.isdir(folder) and has(folder)]
print(json.dumps(["%d.%d" % sys.version_info[:2], sys.prefix, folders, packages]))
"""


def _probes(site: Site, arch: Arch) -> Probes:
    """The probes that load the modules of `provided`: as users do, also where the profile's init file is another one."""
    here = dataclasses.replace(site, modules=as_here(site.modules))
    return Probes(here, dataclasses.replace(arch, modules=arch.provided, unload=arch.provided_unload), key="provided")


def provided_faults(site: Site, arch: Arch) -> tuple[Fault, ...]:
    """The modules of `provided` that cannot be loaded here; jobs with `--runtime modules` load them."""
    probes = _probes(site, arch)
    probes.environment()
    return tuple(probes.faults)


def provided_environment(site: Site, arch: Arch) -> dict[str, str]:
    """The variables of a user who loads the modules of `provided`.

    Raises:
        PlanError: one cannot be loaded.
    """
    probes = _probes(site, arch)
    environ = probes.environment()
    raise_faults(probes.faults)
    return environ


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvidedPython:
    """The Python that modules of the site bring, with what it imports: the packages, and the folders that have them.

    `environ` are the variables with the modules loaded. `folders` are on the path of this Python by itself; those on PYTHONPATH,
    which the modules add, are `added`.
    """

    executable: str
    environ: Mapping[str, str]
    minor: str
    prefix: str
    folders: tuple[str, ...]
    added: tuple[str, ...]
    packages: Mapping[str, str]


def provided_python(site: Site, arch: Arch) -> ProvidedPython:
    """The Python of the modules in `provided`.

    Raises:
        PlanError: the modules do not load, or bring no Python.
    """
    environ = provided_environment(site, arch)
    path = environ.get("PATH")
    executable = shutil.which("python3", path=path) or shutil.which("python", path=path)
    done = capture((executable, "-c", PACKAGES), environ) if executable else None
    if done is None or done.returncode != 0:
        raise PlanError(
            f"the Python of the modules {' '.join(arch.provided)} does not run",
            evidence=done.stderr.strip().splitlines()[-5:] if done else ["there is no python3 on their PATH"],
            hint=f"`module load {' '.join(arch.provided)}`, then `python3 --version`",
        )
    minor, prefix, folders, packages = json.loads(done.stdout)
    added = {os.path.realpath(folder) for folder in environ.get("PYTHONPATH", "").split(":") if folder}
    return ProvidedPython(
        executable=executable or "",
        environ=environ,
        minor=minor,
        prefix=prefix,
        folders=tuple(folder for folder in folders if os.path.realpath(folder) not in added),
        added=tuple(folder for folder in folders if os.path.realpath(folder) in added),
        packages={normalized(name): version for name, version in sorted(packages.items())},
    )


def look_at_container(site: Site) -> tuple[Check, ...]:
    """The program, the image, the overlay and the templates of overlays of a site's containers: which are on this machine.

    What belongs to a user (its path has a variable, or it is pulled from a registry) stops no build and no other user: it is a
    note. A build of a virtual environment does not need the container.
    """
    container = site.container
    if container is None or "container" not in site.runtimes:
        return ()
    state: State = "bad" if site.runtimes[0] == "container" else "note"
    seen = [_program(container, site.origin, state)]
    arch, origin = site.archs[0].name, site.origin
    pulled = container.image.startswith(DOCKER)
    make = f"`provision job overlay --site {site.typed} --arch {arch}` writes the job that makes it"
    pull = f"`{pull_command(site, site.archs[0], None)}` writes the script that pulls it"
    if container.command != "shifter" or not pulled:
        image = image_path(site, container.image)
        seen.append(_file("image", image, state, pull if pulled else f"set `container.image` in `{origin}`"))
    if container.overlay:
        seen.append(_file("overlay", container.overlay, state, make))
    seen += [
        _file("template of overlays", one.path, state, f"set `container.overlay_templates` in `{origin}`")
        for one in container.overlay_templates
    ]
    return tuple(seen)


def _program(container: Container, origin: str, state: State) -> Check:
    """Whether the program that runs containers is on PATH, or comes with a module, which jobs check."""
    program = container.command
    if container.module is not None:
        return _seen(
            "good", f"program `{program}` comes with the module `{container.module}`, which was not loaded here"
        )
    if shutil.which(program) is not None:
        return _seen("good", f"program `{program}` is on PATH")
    hint = f'set `container.module = "{program}"` in `{origin}` if a module provides it'
    return _seen(state, f"program `{program}` is not on PATH", hint=hint)


def _file(what: str, path: str, state: State, hint: str) -> Check:
    """Whether this file is here. A path with a variable that this shell does not have cannot be checked."""
    here = expand_variables(expand_home(path))
    if "$" in here:
        return _seen("note", f"{what} `{path}` was not checked: a variable in it is not set in this shell")
    if exists(here):
        return _seen("good", f"{what} `{here}` exists")
    return _seen("note" if "$" in path else state, f"{what} `{here}` does not exist", hint=hint)
