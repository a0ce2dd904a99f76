"""The part of a plan that is about packages compiled in the job: source, compiler, MPI, and what decides each wheel. Pure.

Also what is written to a build's folder, and set, to compile a package there: its kit. A stack that compiles none needs neither a
compiler nor an MPI.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePosixPath

from provision.errors import PlanError, one_fault, raise_faults
from provision.horovod import flags
from provision.knowledge.compilable import COMPILABLE
from provision.knowledge.frameworks import FRAMEWORKS
from provision.knowledge.targets import flags_for
from provision.model.facts import Facts, GpuFacts
from provision.model.lock import Lock, Pin
from provision.model.patch import Patch, select_patches
from provision.model.quoting import quote_linker, quote_sh
from provision.model.request import Request

# mpi4py 4.1.2 is one file of C with 13 MB. gcc 12 needs 12 CPU seconds for it instead of 66 with -O1, and a call of Allreduce
# takes 0.5 us instead of 0.4; with -O0 it is 7 seconds, and a call takes more than twice as long.
QUICK = "-Og -g0"
# The names of MPI wrappers for C++, with those for C: MPICH and Open MPI (also `mpicxx.mpich`), Intel's, Cray's.
C_WRAPPERS = (
    (r"mpi(?:cxx|c\+\+|CC)(?=\.|$)", "mpicc"),
    (r"mpiicpc$", "mpiicc"),
    (r"mpiicpx$", "mpiicx"),
    (r"mpig(?:xx|\+\+)$", "mpigcc"),
    (r"CC$", "cc"),
)

# The wrapper of an MPI in the prefix writes the folder of that prefix into the RUNPATH. It starts this in place of the compiler.
CC_IN_PREFIX = """\
#!/usr/bin/env bash
# Written by provision. A wheel is used again in other prefixes, so its RUNPATH must not have the folder of this one.
set -euo pipefail
arguments=()
while [ $# -gt 0 ]; do
  case "$1" in
    -Wl,-rpath) shift ;;  # the folder is the next argument
    -Wl,-rpath,* | -Wl,-rpath=*) ;;
    *) arguments+=("$1") ;;
  esac
  shift
done
exec @CC@ "${arguments[@]}"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kit:
    """What a build needs beside the source and the tools: variables, files and programs, by their names in its folder."""

    environ: Mapping[str, str]
    files: Mapping[str, str] = field(default_factory=dict)
    programs: Mapping[str, str] = field(default_factory=dict)


def c_wrapper(cxx: str) -> str:
    """The MPI wrapper for C beside the one for C++, a path or a name; `mpicc` if the name of that is not known."""
    path = PurePosixPath(cxx)
    for pattern, name in C_WRAPPERS:
        if re.match(pattern, path.name):
            return str(path.with_name(re.sub(pattern, name, path.name)))
    return str(path.with_name("mpicc"))


def kit_of_horovod(
    frameworks: tuple[str, ...],
    environ: Mapping[str, str],
    runpath: tuple[str, ...],
    gpu: GpuFacts | None,
    folder: PurePosixPath,
    mpicxx: str,
) -> Kit:
    """Horovod is configured by variables and by a toolchain file of CMake."""
    nccl, folder_of_nccl = {}, ""
    if gpu and gpu.nccl_shared:
        # A linker script: NCCL's wheel has only `libnccl.so.2`, but CMake looks for this name, and the site's folder is not ours.
        nccl["nccl/libnccl.so"] = f"INPUT({quote_linker(gpu.nccl_library)})\n"
        folder_of_nccl = str(folder / "nccl")
    elif gpu:
        folder_of_nccl = str(PurePosixPath(gpu.nccl_library).parent)
    return Kit(
        environ={
            **environ,
            "HOROVOD_CMAKE": str(folder / "cmake"),
            "CMAKE_GENERATOR": "Ninja",
            "CMAKE_TOOLCHAIN_FILE": str(folder / "toolchain.cmake"),
            **({"HOROVOD_NCCL_LIB": folder_of_nccl} if gpu else {}),
        },
        files={"toolchain.cmake": flags.toolchain_file(frameworks, mpicxx, runpath, gpu=gpu is not None), **nccl},
        programs={"cmake": flags.CMAKE_WRAPPER},
    )


def kit_with_wrapper(
    name: str,
    environ: Mapping[str, str],
    mpi_libraries: tuple[str, ...],
    cc: str,
    minor: str,
    folder: PurePosixPath,
    mpicc: str,
) -> Kit:
    """Other packages are compiled and linked by the wrapper for C.

    The linker reads its options from a file: between setup.py and the linker, a wrapper that is a script may expand `$ORIGIN`.
    The folders of the MPI come first, because the Python's own come before those of the wrapper: beside Debian's is another MPI.
    `cc` is the text of a program in place of the compiler; empty if the wrapper starts its own.
    """
    of_mpi = [str(PurePosixPath(library).parent) for library in mpi_libraries]
    first = (f"-L{place}" for place in dict.fromkeys(of_mpi or [str(PurePosixPath(mpicc).parent.parent / "lib")]))
    return Kit(
        environ={
            **environ,
            **configured(name, mpicc),
            "LDFLAGS": shlex.join((*first, f"-Wl,@{folder / 'link.txt'}")),
            **(dict.fromkeys(("MPICH_CC", "OMPI_CC"), str(folder / "cc")) if cc else {}),
            # Build tools such as Cython are imported, not started.
            "PYTHONPATH": str(folder / "tools" / "lib" / f"python{minor}" / "site-packages"),
        },
        files={"link.txt": linker_options(mpi_libraries)},
        programs={"cc": cc} if cc else {},
    )


def configured(name: str, mpicc: str) -> dict[str, str]:
    """The variables that configure a package, with the wrapper for C."""
    return {variable: text.format(mpicc=mpicc) for variable, text in COMPILABLE[name].environ.items()}


def linker_options(mpi_libraries: tuple[str, ...]) -> str:
    """The text of a file of linker options: where a package looks for the MPI; the folder `lib` of its prefix if that has it.

    Relative to a library in `lib/python3.*/site-packages/NAME/`.
    """
    folders = dict.fromkeys(str(PurePosixPath(library).parent) for library in mpi_libraries) or ("$ORIGIN/../../..",)
    return "".join(f'-rpath="{folder}"\n' for folder in folders)


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """How a package is compiled. `target_flags` are the compiler flags for the CPU; `compiler` and `mpi` describe them."""

    source: Pin
    tools: Lock
    patches: tuple[Patch, ...] = ()
    compiler: str
    target_flags: str
    mpi: str
    wrapper: str
    """The MPI wrapper: a path, or only its name if the MPI is installed into the prefix."""
    mpi_libraries: tuple[str, ...]
    """The libraries that the wrapper links; empty if the MPI is installed into the prefix."""
    kit: Callable[[PurePosixPath, str], Kit]
    """What is written to a folder, and set, to compile there with the wrapper at this path."""
    abi: Mapping[str, object]
    flags: str = ""
    """The tool's own flags of the compiler, beside those of the target: with others the same source makes another library."""

    @property
    def name(self) -> str:
        """The package."""
        return self.source.name

    @property
    def title(self) -> str:
        """The package as people write it."""
        return "Horovod" if self.name == "horovod" else self.name

    @property
    def key(self) -> str:
        """The key of the compiled wheel: 16 hexadecimal digits of the sha256 over the canonical JSON of what decides its ABI."""
        return hashlib.sha256(json.dumps(self.abi, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def version(self) -> str:
        """The version of the wheel, including the number of our patches if there are any."""
        return flags.local_version(self.source.version, len(self.patches))


def make_builds(request: Request, facts: Facts, gpu: GpuFacts | None, target: str) -> tuple[Build, ...]:
    """How each package is compiled for `target` on a machine with these facts; none if the stack names no such package.

    Raises:
        PlanError: the lock does not pin a package, or pins more than its source; there is no compiler or MPI; Horovod is not for
            GPUs with this framework.
    """
    arch, stack = request.arch, request.stack
    if not stack.from_source:
        return ()
    in_prefix = arch.mpi.provider == "pypi"
    of_site = None if in_prefix else facts.mpi
    no_mpi = of_site is None and not in_prefix
    if facts.python is None or facts.compiler is None or no_mpi or request.build_lock is None:
        raise PlanError("the probes did not find a compiler and MPI, and gave no reason")
    compiler = f"{facts.compiler.family} {facts.compiler.version} {facts.compiler.cxx}"
    target_flags = flags_for(target, facts.compiler.family, facts.compiler.version)
    mpi = f"{of_site.family} {of_site.version}; {of_site.show}" if of_site else request.mpi_wheel
    mpicxx, libraries = (of_site.cxx, of_site.libraries) if of_site else (arch.mpi.cxx, ())
    build = partial(
        Build,
        tools=request.build_lock,
        compiler=compiler,
        target_flags=target_flags,
        mpi=mpi,
        mpi_libraries=libraries,
    )
    # A wrapper inside the prefix comes from the same wheel in every prefix, so its path does not decide the ABI.
    decide = partial(decide_abi, python_tag=facts.python.tag, compiler=compiler, mpi=mpi)
    builds = []
    if stack.horovod:
        source = request.source("horovod", stack.horovod)
        names = (stack.framework.name, *stack.beside)
        pins = {name: request.framework_pin(FRAMEWORKS[name]) for name in names}
        if gpu and names != ("tensorflow",):
            hint = "use a stack whose proof is `ddp` on this arch; `provision stack list` shows them"
            what = f"Horovod for {stack.framework.interface.title} is built for CPUs only: with CUDA it was not tried"
            raise_faults(one_fault("mismatch", "horovod", what, hint=hint))
        versions: dict[str, str] = {name: pin.version for name, pin in pins.items()}
        patches = select_patches(request.patches, versions, gpu=gpu is not None)
        environ = flags.build_environ(
            frameworks=names, cxx=facts.compiler.cxx, arch_flags=target_flags, patches=len(patches)
        )
        if gpu and arch.gpu:
            environ |= flags.gpu_environ(arch.gpu, gpu)
        environ |= site_environ(request)
        runpath = flags.runpath(names, libraries, gpu.nccl_library if gpu and gpu.nccl_shared else None)
        abi = decide(
            source=source,
            frameworks=tuple(pins.values()),
            environ=environ,
            toolchain=flags.toolchain_file(names, mpicxx, runpath, gpu=gpu is not None),
            patches=patches,
            gpu=gpu,
        )
        kit = partial(kit_of_horovod, names, environ, runpath, gpu)
        builds.append(build(source=source, patches=patches, wrapper=mpicxx, kit=kit, abi=abi))
    mpicc = c_wrapper(mpicxx)
    for name, version in stack.compiled:
        source = request.source(name, version)
        if of_site and not of_site.cc:
            hint = "load an MPI module that has it, or take `[compiled]` out of the stack"
            what = f"there is no `{mpicc}`, the MPI wrapper for C, with which `{name}` is compiled"
            raise_faults(one_fault("missing", "mpi", what, hint=hint))
        environ = {"CFLAGS": f"{target_flags} {QUICK}", **site_environ(request)}
        cc = CC_IN_PREFIX.replace("@CC@", quote_sh(arch.compiler.cc)) if in_prefix else ""
        toolchain = linker_options(libraries) + cc
        abi = decide(source=source, environ=environ | configured(name, mpicc), toolchain=toolchain)
        kit = partial(kit_with_wrapper, name, environ, libraries, cc, facts.python.minor)
        builds.append(build(source=source, wrapper=mpicc, kit=kit, abi=abi, flags=QUICK))
    return tuple(builds)


def site_environ(request: Request) -> dict[str, str]:
    """The variables that the profile sets while something is compiled."""
    arch = request.arch
    return {**({"CC": arch.compiler.cc} if arch.compiler.cc != "gcc" else {}), **dict(arch.build_environ)}


def decide_abi(
    *,
    source: Pin,
    python_tag: str,
    compiler: str,
    mpi: str,
    environ: Mapping[str, str],
    toolchain: str,
    frameworks: Sequence[Pin] = (),
    patches: Sequence[Patch] = (),
    gpu: GpuFacts | None = None,
) -> dict[str, object]:
    """Everything that decides a wheel's ABI, as data: it is stored beside the wheel and hashed for its key.

    The exact version of a framework counts, not only its minor version: with another patch level Horovod only warns,
    and loads. `frameworks` is empty for a package that is not compiled against one.
    """
    return {
        "source": [source.name, source.version, *source.hashes],
        **(
            {"framework": [word for one in frameworks for word in (one.name, one.version, *one.hashes)]}
            if frameworks
            else {}
        ),
        "python": python_tag,
        "compiler": compiler,
        "mpi": mpi,
        "environ": dict(sorted(environ.items())),
        "toolchain": toolchain,
        "patches": [f"{patch.name} sha256:{patch.sha256}" for patch in patches],
        # `environ` already holds the compute capabilities and how NCCL is linked.
        **({"cuda": gpu.cuda_version, "nccl": f"{gpu.nccl_version} {gpu.nccl_library}"} if gpu else {}),
    }
