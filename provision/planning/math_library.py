"""The library with which the framework must compute on CPUs, if the arch or the stack requires one. Pure."""

from __future__ import annotations

from provision.errors import Fault, one_fault
from provision.knowledge.math_libraries import REPORTED, MathLibrary
from provision.model.request import Request
from provision.profile.arch import Arch
from provision.profile.stack import Stack


def required_library(arch: Arch, stack: Stack) -> MathLibrary | None:
    """What the arch or the stack requires; None if both libraries are right."""
    return stack.math or arch.math


def library_environ(arch: Arch, stack: Stack) -> tuple[tuple[str, str], ...]:
    """The variables with which the framework uses the library that is required, without those that the files set themselves."""
    framework, own = stack.framework, dict((*stack.environ, *arch.environ))
    selecting = framework.interface.onednn_environ(framework.package, framework.version)
    selecting = selecting if required_library(arch, stack) else ()
    return tuple(pair for pair in selecting if pair[0] not in own)


def library_faults(request: Request) -> tuple[Fault, ...]:
    """Why the framework of the stack cannot compute with the library that is required, if it cannot."""
    arch, stack = request.arch, request.stack
    required, framework = required_library(arch, stack), stack.framework
    if required is None or framework.interface.has_onednn(framework.package, framework.version):
        return ()
    name = REPORTED[required]
    if stack.math is None:
        who, where = f"arch `{arch.name}`", f"`archs.{arch.name}.math` in `{request.site.origin}`"
        hint = "`--stack tensorflow-1.15.2-intel`, or a stack of TensorFlow 2.5 or newer"
    else:
        who, where = f"the stack `{stack.name}`", f"`math` in the stack `{stack.name}`"
        hint = "set `framework.package` to `intel-tensorflow`, or remove the key `math`"
    return one_fault(
        "mismatch",
        "math",
        f"{who} requires {name}, but `{framework.package}` {framework.version} computes with Eigen",
        f"{where}; TensorFlow's own packages contain {name} from 2.5 on",
        hint=hint,
    )
