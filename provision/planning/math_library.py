"""The library with which TensorFlow must compute on CPUs, if the arch or the stack requires one. Pure."""

from __future__ import annotations

from provision.knowledge.math_libraries import REPORTED, MathLibrary, has_onednn, selecting_environ
from provision.model.problem import Problem
from provision.model.request import Request
from provision.profile.arch import Arch
from provision.profile.stack import Stack


def required_library(arch: Arch, stack: Stack) -> MathLibrary | None:
    """What the arch or the stack requires; None if both libraries are right."""
    return stack.math or arch.math


def library_environ(arch: Arch, stack: Stack) -> tuple[tuple[str, str], ...]:
    """The variables with which TensorFlow uses the library that is required, without those that the files set themselves."""
    framework, own = stack.framework, dict((*stack.environ, *arch.environ))
    selecting = selecting_environ(framework.package, framework.version) if required_library(arch, stack) else ()
    return tuple(pair for pair in selecting if pair[0] not in own)


def library_problem(arch: Arch, stack: Stack, origin: str) -> Problem | None:
    """Why the framework of the stack cannot compute with the library that is required; `origin` is the profile's file."""
    required, framework = required_library(arch, stack), stack.framework
    if required is None or has_onednn(framework.package, framework.version):
        return None
    name = REPORTED[required]
    of_arch = stack.math is None
    where = f"`archs.{arch.name}.math` in `{origin}`" if of_arch else f"`math` in the stack `{stack.name}`"
    return Problem(
        kind="mismatch",
        subject="math",
        message=f"{f'arch `{arch.name}`' if of_arch else f'the stack `{stack.name}`'} requires {name}, but `{framework.package}` "
        f"{framework.version} computes with Eigen",
        evidence=(f"{where}; TensorFlow's own packages contain {name} from 2.5 on",),
        hint="`--stack tensorflow-1.15.2-intel`, or a stack of TensorFlow 2.5 or newer"
        if of_arch
        else "set `framework.package` to `intel-tensorflow`, or remove the key `math`",
    )


def library_problems(request: Request) -> tuple[Problem, ...]:
    """The same of a request, for a list of problems."""
    found = library_problem(request.arch, request.stack, request.site.origin)
    return (found,) if found else ()
