"""The part of a plan that is about Horovod: the source, the compiler, the MPI, and what decides the wheel. Pure.

A stack without Horovod has no such part and needs neither a compiler nor an MPI.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from provision.errors import PlanError
from provision.horovod import abi as horovod_abi
from provision.horovod import flags
from provision.horovod.patches import select_patches
from provision.knowledge.targets import flags_for
from provision.model.facts import Facts, GpuFacts
from provision.model.lock import Lock, Pin
from provision.model.patch import Patch
from provision.model.request import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """How Horovod is compiled. `target_flags` are the compiler flags for the CPU; `compiler` and `mpi` describe them."""

    source: Pin
    tools: Lock
    patches: tuple[Patch, ...]
    compiler: str
    target_flags: str
    mpi: str
    mpicxx: str
    """The MPI wrapper: a path, or only its name if the MPI is installed into the prefix."""
    mpi_libraries: tuple[str, ...]
    """The libraries that the wrapper links; empty if the MPI is installed into the prefix."""
    environ: Mapping[str, str]
    gpu: GpuFacts | None
    abi: Mapping[str, object]

    @property
    def key(self) -> str:
        """The key of the compiled wheel."""
        return horovod_abi.key(self.abi)

    @property
    def version(self) -> str:
        """The version of the wheel, including the number of our patches if there are any."""
        return flags.local_version(self.source.version, len(self.patches))

    def toolchain(self, mpicxx: str) -> str:
        """The text of the CMake toolchain file, with the MPI wrapper at this path."""
        return flags.toolchain_file(mpicxx, _runpath(self.mpi_libraries, self.gpu), gpu=self.gpu is not None)


def make_build(request: Request, facts: Facts, gpu: GpuFacts | None, target: str) -> Build | None:
    """How Horovod is compiled for `target` on a machine with these facts; None if the stack has no Horovod.

    Raises:
        PlanError: the lock does not pin Horovod, or there is no compiler or MPI.
    """
    arch, stack = request.arch, request.stack
    if stack.horovod is None:
        return None
    in_prefix = arch.mpi.provider == "pypi"
    no_mpi = facts.mpi is None and not in_prefix
    if facts.python is None or facts.compiler is None or no_mpi or request.build_lock is None:
        raise PlanError("the probes did not find a compiler and MPI, and gave no reason")
    source = request.pinned("horovod", stack.horovod)
    framework = request.pinned(stack.framework.package, stack.framework.version)
    patches = select_patches(request.patches, stack.framework.version, gpu=gpu is not None)
    compiler = f"{facts.compiler.family} {facts.compiler.version} {facts.compiler.cxx}"
    target_flags = flags_for(target, facts.compiler.family, facts.compiler.version)
    environ = flags.build_environ(cxx=facts.compiler.cxx, arch_flags=target_flags, patches=len(patches))
    if gpu and arch.gpu:
        environ |= flags.gpu_environ(arch.gpu, gpu)
    environ |= site_environ(request)
    site_mpi = f"{facts.mpi.family} {facts.mpi.version}; {facts.mpi.show}" if facts.mpi else ""
    mpi = request.mpi_wheel or site_mpi
    mpicxx = arch.mpi.cxx if in_prefix or facts.mpi is None else facts.mpi.cxx
    libraries = facts.mpi.libraries if facts.mpi and not in_prefix else ()
    abi = horovod_abi.abi(
        source=source,
        framework=framework,
        python_tag=facts.python.tag,
        compiler=compiler,
        mpi=mpi,
        environ=environ,
        # The wrapper inside the prefix comes from the same wheel in every prefix, so its path does not decide the ABI.
        toolchain=flags.toolchain_file(mpicxx, _runpath(libraries, gpu), gpu=gpu is not None),
        patches=patches,
        gpu=gpu,
    )
    return Build(
        source=source,
        tools=request.build_lock,
        patches=patches,
        compiler=compiler,
        target_flags=target_flags,
        mpi=mpi,
        mpicxx=mpicxx,
        mpi_libraries=libraries,
        environ=environ,
        gpu=gpu,
        abi=abi,
    )


def site_environ(request: Request) -> dict[str, str]:
    """The variables that the profile sets while something is compiled."""
    arch = request.arch
    return {**({"CC": arch.compiler.cc} if arch.compiler.cc != "gcc" else {}), **dict(arch.build_environ)}


def _runpath(mpi_libraries: tuple[str, ...], gpu: GpuFacts | None) -> tuple[str, ...]:
    return flags.runpath(mpi_libraries, gpu.nccl_library if gpu and gpu.nccl_shared else None)
