"""What decides an environment, what its module sets included, as text: the same identity gives the same prefix. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from provision.backends.backend import Draft
from provision.knowledge.frameworks.interface import MathLibrary
from provision.launch.rank_threads import module_environ
from provision.model.facts import Facts, GpuFacts, Interpreter
from provision.model.layout import EnvironmentId
from provision.model.plan import fingerprint
from provision.model.request import Request
from provision.profile.arch import Arch
from provision.profile.choices import BACKENDS
from provision.profile.stack import Stack

# Raised when the steps change in a way that makes a different environment of the same inputs.
RECIPE = "1"
# The order in which people read it; names that are not in this list come last.
ORDER = (
    *("recipe", "backend", "arch", "target", "modules", "python", "compiler", "mpi", "stack", "framework", "horovod"),
    *(
        "patches",
        "compiled",
        "lock",
        "mpi lock",
        "module",
        "module environment",
        "build environment",
        "gpu",
        "cuda",
        "nccl",
    ),
)


def gpu_of(request: Request, facts: Facts) -> GpuFacts | None:
    """The CUDA and NCCL to build with; None on an arch without GPUs."""
    return facts.gpu if request.arch.gpu else None


def identity(request: Request, facts: Facts, python: Interpreter, draft: Draft) -> dict[str, str]:
    """Everything that decides the environment: the planner's part, and the backend's."""
    arch, stack, gpu = request.arch, request.stack, gpu_of(request, facts)
    target = facts.target_of(arch.target)
    parts = {
        "recipe": RECIPE,
        **({"backend": stack.backend} if stack.backend != BACKENDS[0] else {}),
        "arch": target if arch.target == "native" else arch.name,
        "target": target,
        "modules": " ".join((*(f"-{name}" for name in arch.unload), *facts.modules)),
        "python": f"{python.version} {python.executable}",
        "stack": stack.name,
        "framework": f"{stack.framework.package} {stack.framework.version}",
        "module": stack.module,
        "module environment": " ".join(
            f"{name}={shlex.quote(value)}" for name, value in loaded_environ(arch, stack, gpu)
        ),
        **({"deliver": " ".join((arch.deliver, *arch.deliver_with))} if arch.deliver != "files" else {}),
        **dict(library_path(arch)),
        **_gpu_parts(request, gpu),
        **draft.identity,
    }
    known = [name for name in ORDER if name in parts]
    return {name: parts[name] for name in (*known, *(name for name in parts if name not in known))}


def environment_id(identity: Mapping[str, str]) -> EnvironmentId:
    """The name of the environment with this identity."""
    name, version = identity["module"].split("/")
    return EnvironmentId(identity["arch"], name, version, fingerprint(identity))


def loaded_environ(arch: Arch, stack: Stack, gpu: GpuFacts | None) -> tuple[tuple[str, str], ...]:
    """The variables that the modulefile sets in addition to the backend's. Those of the profile come last, so that they win."""
    of_gpu = stack.framework.interface.cuda_environ(gpu.cuda_home) if gpu else ()
    own = dict(arch.environ)
    return (
        *library_environ(arch, stack),
        *stack.environ,
        *module_environ(arch),
        *(pair for pair in of_gpu if pair[0] not in own),
        *arch.environ,
    )


def required_library(arch: Arch, stack: Stack) -> MathLibrary | None:
    """What the arch or the stack requires; None if both libraries are right."""
    return stack.math or arch.math


def library_environ(arch: Arch, stack: Stack) -> tuple[tuple[str, str], ...]:
    """The variables with which the framework uses the library that is required, without those that the files set themselves."""
    framework, own = stack.framework, dict((*stack.environ, *arch.environ))
    selecting = framework.interface.onednn_environ(framework.package, framework.version)
    selecting = selecting if required_library(arch, stack) else ()
    return tuple(pair for pair in selecting if pair[0] not in own)


def library_path(arch: Arch) -> tuple[tuple[str, str], ...]:
    """What the modulefile puts in front of LD_LIBRARY_PATH; empty if the profile names no folders."""
    return (("LD_LIBRARY_PATH", ":".join(arch.library_path)),) if arch.library_path else ()


def _gpu_parts(request: Request, gpu: GpuFacts | None) -> dict[str, str]:
    """What also decides a GPU build. Only Horovod has device code and links NCCL."""
    if gpu is None or request.arch.gpu is None:
        return {}
    cuda = {"cuda": f"{gpu.cuda_version} {gpu.cuda_home}"}
    if request.stack.horovod is None:
        return cuda
    return {
        "gpu": f"compute capability {' '.join(request.arch.gpu.capabilities)}",
        **cuda,
        "nccl": f"{gpu.nccl_version} {gpu.nccl_library}",
    }
