"""How Horovod is configured: every switch explicit, nothing left to what a build happens to find.

Sources: Horovod 0.28.1 `setup.py`, `CMakeLists.txt`, `cmake/Utilities.cmake`.
"""

from __future__ import annotations

import os.path

from provision.model.facts import GpuFacts
from provision.profile.gpu import Gpu


def build_environ(*, cxx: str, arch_flags: str, patches: int = 0) -> dict[str, str]:
    """The environment variables that configure a build with TensorFlow and MPI, and with nothing else.

    `cxx` is a path. Without `HOROVOD_WITH_MPI` and `HOROVOD_WITH_TENSORFLOW` a build that cannot find
    them succeeds without them. Gloo stays out: it brings the launcher's unauthenticated network service
    (CVE-2024-10190) and a second way for ranks not to see each other.
    """
    return {
        "HOROVOD_WITH_TENSORFLOW": "1",
        "HOROVOD_WITHOUT_PYTORCH": "1",
        "HOROVOD_WITHOUT_MXNET": "1",
        "HOROVOD_WITH_MPI": "1",
        "HOROVOD_WITHOUT_GLOO": "1",
        "HOROVOD_WITHOUT_NVTX": "1",
        "HOROVOD_CPU_OPERATIONS": "MPI",
        "HOROVOD_BUILD_ARCH_FLAGS": arch_flags,
        "CXX": cxx,
        **({"HOROVOD_LOCAL_VERSION": f"provision.{patches}"} if patches else {}),
    }


def gpu_environ(gpu: Gpu, facts: GpuFacts) -> dict[str, str]:
    """The variables of a build whose GPU operations go through NCCL; what is on the CPU still goes through MPI.

    Horovod links a static NCCL where nothing is said, and builds device code for all that nvcc knows.
    """
    return {
        "HOROVOD_GPU": "CUDA",
        "HOROVOD_GPU_OPERATIONS": "NCCL",
        "HOROVOD_CUDA_HOME": facts.cuda_home,
        "HOROVOD_NCCL_HOME": facts.nccl_home,
        "HOROVOD_NCCL_LINK": gpu.nccl_link,
        "HOROVOD_BUILD_CUDA_CC_LIST": ",".join(gpu.capabilities),
    }


def nccl_for_the_linker(facts: GpuFacts) -> str:
    """The text of a `libnccl.so` (a linker script) that stands for the library which programs load.

    A wheel of NCCL has `libnccl.so.2` alone, and CMake looks for `libnccl.so`; the site's folder is not ours to add to.
    """
    return f'INPUT("{facts.nccl_library}")\n'


def local_version(version: str, patches: int) -> str:
    """The wheel's version: a source that we changed says so, and by how many patches."""
    return f"{version}+provision.{patches}" if patches else version


def toolchain_file(mpicxx: str, runpath: tuple[str, ...], *, gpu: bool = False) -> str:
    """A CMake toolchain file (CMake reads it from `CMAKE_TOOLCHAIN_FILE`).

    It leaves out debug information (the library is 1.4 MB instead of 40, and links in a second), names the MPI wrapper,
    and sets the library's RUNPATH: CMake would write absolute paths of the environment it was built in, and a wheel
    that is reused must not point there.
    """
    return "".join(
        (
            'set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O3 -DNDEBUG" CACHE STRING "" FORCE)\n',
            f'set(MPI_CXX_COMPILER "{mpicxx}" CACHE FILEPATH "" FORCE)\n',
            "set(MPI_CXX_SKIP_MPICXX ON)\n",
            # A CPU build, also where a CUDA toolkit lies about: Horovod looks for one and would compile with it.
            *(
                ()
                if gpu
                else (
                    'set(CMAKE_CUDA_COMPILER "" CACHE FILEPATH "" FORCE)\n',
                    "set(CMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit ON)\n",
                )
            ),
            "set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)\n",
            f'set(CMAKE_INSTALL_RPATH "{";".join(runpath)}")\n',
        )
    )


CMAKE_WRAPPER = """\
#!/usr/bin/env bash
# Written by provision. Horovod's setup.py passes VERBOSE=1 to the build tool, which is make's way; ninja stops at it.
set -euo pipefail
arguments=()
for argument in "$@"; do
  [ "$argument" = VERBOSE=1 ] || arguments+=("$argument")
done
exec cmake "${arguments[@]}"
"""

# Below site-packages/horovod/tensorflow/, where the library stands: TensorFlow's libraries, and the prefix's own lib/.
RUNPATH_TENSORFLOW = ("$ORIGIN/../../tensorflow",)
RUNPATH_PREFIX = ("$ORIGIN/../../../..",)


def runpath(mpi_libraries: tuple[str, ...], nccl_library: str | None = None) -> tuple[str, ...]:
    """Where the built library looks for others: TensorFlow beside it, then MPI in the prefix or where the site has it,
    then the site's NCCL where a shared one is linked."""
    folders = dict.fromkeys(os.path.dirname(library) for library in mpi_libraries)
    nccl = (os.path.dirname(nccl_library),) if nccl_library else ()
    return RUNPATH_TENSORFLOW + (tuple(folders) or RUNPATH_PREFIX) + nccl
