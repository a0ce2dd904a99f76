"""What is written to a build's folder, and set, to compile a package there. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from provision.horovod import flags
from provision.knowledge.compilable import COMPILABLE
from provision.model.facts import GpuFacts
from provision.model.quoting import quote_linker

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
