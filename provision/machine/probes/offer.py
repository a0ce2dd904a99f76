"""What this machine, or the profile of another one, offers to a stack: Pythons, CUDA, glibc, the family of the CPU."""

from __future__ import annotations

import contextlib
import re
from dataclasses import replace

from provision.errors import CommandError
from provision.knowledge.targets import family_of
from provision.knowledge.versions import release
from provision.machine.probes.loaded_modules import available_modules
from provision.machine.probes.look_around import cpu_family, glibc_version
from provision.machine.probes.probe import Probes, interpreter_at, interpreter_of
from provision.planning.solver import Offer
from provision.profile.arch import Arch
from provision.profile.site import Site

# `cudatoolkit/12.2`, `cuda/11.8.0`, `CUDA/12.1.1`, `nvhpc-hpcx-cuda12/24.5`, `TensorFlow/2.11.0-foss-2022a-CUDA-11.7.0`.
CUDA_IN_NAME = re.compile(r"(?:^|[-_/])cuda(?:toolkit)?[-_/]?(\d{1,2}(?:\.\d{1,2})?)(?:[._/-]|$)", re.IGNORECASE)
PYTHON_IN_NAME = re.compile(r"^(?:cray-)?python[-_/]?(3\.\d{1,2})(?:[._/-]|$)", re.IGNORECASE)

# Two parts of a version of CUDA: the third does not matter.
VERSION = re.compile(r"(\d{1,2}\.\d{1,2})")


def offer_here(site: Site, arch: Arch, minors: tuple[str, ...]) -> Offer:
    """What this machine offers with the arch's modules loaded; `minors` are the Pythons that are looked for."""
    probes, of_profile = Probes(site, arch), offer_of_profile(arch)
    environ = probes.environment()
    if probes.faults:  # the modules cannot be loaded here, so this is not a node of the site, or the profile is wrong
        return of_profile
    named = interpreter_at(arch.python, environ) if arch.python else None
    pythons = [named.minor] if named else []
    if not arch.python:
        pythons = [minor for minor in minors if interpreter_of(minor, environ)]
    gpu = probes.gpu(environ, None, compiles=False) if arch.gpu else None
    return replace(
        of_profile,
        pythons=tuple(sorted(pythons, key=release)),
        cuda=((gpu.cuda_version,) if gpu else ()) if arch.gpu else None,
        glibc=glibc_version(),
        source="this machine offers",
        cuda_modules=cuda_of_modules(site) if arch.gpu else (),
    )


def cuda_of_modules(site: Site) -> tuple[str, ...]:
    """The CUDA versions that the module system lists; empty if it does not answer."""
    if site.modules.name == "none":
        return ()
    with contextlib.suppress(CommandError):
        names = available_modules(site.modules, site.origin)
        found = {match[1] for one in names if one.subject == "cuda" and (match := VERSION.match(one.version))}
        return tuple(sorted(found, key=release))
    return ()


def offer_of_profile(arch: Arch) -> Offer:
    """What the profile says alone: the versions in the names of its modules. What they do not show is not known."""
    cuda = tuple(dict.fromkeys(match[1] for name in arch.modules if (match := CUDA_IN_NAME.search(name))))
    named = (*arch.modules, *([arch.python.rpartition("/")[2]] if arch.python else []))
    pythons = tuple(dict.fromkeys(match[1] for name in named if (match := PYTHON_IN_NAME.search(name))))
    return Offer(
        pythons=pythons or None,
        cuda=(cuda or None) if arch.gpu else None,
        gpus=arch.gpu is not None,
        glibc=None,
        machine=family_of(arch.target, cpu_family()),
        source="the arch's modules offer",
        capabilities=arch.gpu.capabilities if arch.gpu else (),
        math=arch.math,
    )
