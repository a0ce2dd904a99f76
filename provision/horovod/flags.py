"""How Horovod is configured: every switch is explicit, so the result does not depend on what the build happens to find.

Sources: Horovod 0.28.1 `setup.py`, `CMakeLists.txt`, `cmake/Utilities.cmake`.
"""

from __future__ import annotations

import os.path
from collections.abc import Sequence

from provision.knowledge.frameworks import FRAMEWORKS
from provision.model.facts import GpuFacts
from provision.model.quoting import quote_cmake
from provision.profile.arch import Gpu

# The frameworks that Horovod is built for, each with the folder of its libraries in site-packages.
LIBRARIES = {"tensorflow": "tensorflow", "pytorch": "torch/lib"}


def build_environ(*, frameworks: Sequence[str], cxx: str, arch_flags: str, patches: int = 0) -> dict[str, str]:
    """The environment variables that configure a build with these frameworks and MPI, and with nothing else.

    `cxx` is a path. Without `HOROVOD_WITH_MPI` and `HOROVOD_WITH_TENSORFLOW`, a build that cannot find MPI or TensorFlow
    still succeeds, but without them. Gloo is left out: it brings the unauthenticated network service of `horovodrun`
    (CVE-2024-10190), and one more way in which ranks can fail to find each other.
    """
    return {
        **{f"HOROVOD_WITH{'' if name in frameworks else 'OUT'}_{name.upper()}": "1" for name in LIBRARIES},
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
    """The variables of a build whose GPU operations use NCCL; operations on the CPU still use MPI.

    Unless they are set, Horovod links NCCL statically and builds device code for every GPU that nvcc knows.
    """
    return {
        "HOROVOD_GPU": "CUDA",
        "HOROVOD_GPU_OPERATIONS": "NCCL",
        "HOROVOD_CUDA_HOME": facts.cuda_home,
        "HOROVOD_NCCL_HOME": facts.nccl_home,
        "HOROVOD_NCCL_LINK": gpu.nccl_link,
        "HOROVOD_BUILD_CUDA_CC_LIST": ",".join(gpu.capabilities),
    }


def local_version(version: str, patches: int) -> str:
    """The version of the wheel. If we patched the source, the version includes the number of patches."""
    return f"{version}+provision.{patches}" if patches else version


# CMake calls this function when it has read all of Horovod's files. Sources that CMake joins into one file share the headers
# that all of them include. The sources of the framework stay by themselves: TensorFlow's own
# headers take as long as many other sources (with them 16 CPU seconds; the joined files take 13 and 19).
UNITY_BUILD = """\
function(provision_unity_build)
  if(TARGET @TARGET@)
    set_target_properties(@TARGET@ PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 13)
    get_target_property(sources @TARGET@ SOURCES)
    list(FILTER sources INCLUDE REGEX "/horovod/@PACKAGE@/[^/]*$")
    set_source_files_properties(${sources} TARGET_DIRECTORY @TARGET@ PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()
cmake_language(DEFER CALL provision_unity_build)
"""

# The linker of GNU needs 7 to 10 CPU seconds for the 446,000 symbols of TensorFlow 2.21's largest library, at the end, when the
# other core has nothing to do. An empty library of its name is as good: a shared library finds its symbols when it is loaded,
# which the inspection tries.
QUICK_LINK = """\
function(provision_quick_link)
  if(TARGET tensorflow)
    set(stub "${CMAKE_BINARY_DIR}/empty.so")
    execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -shared -Wl,-soname,libtensorflow_cc.so.2 -o "${stub}" -x c++ /dev/null
                    COMMAND_ERROR_IS_FATAL ANY)
    get_target_property(libraries tensorflow LINK_LIBRARIES)
    string(REGEX REPLACE "[^; ]*/libtensorflow_cc\\.so\\.2" "-Wl,--push-state,--no-as-needed,${stub},--pop-state"
           libraries "${libraries}")
    set_target_properties(tensorflow PROPERTIES LINK_LIBRARIES "${libraries}")
  endif()
endfunction()
cmake_language(DEFER CALL provision_quick_link)
"""

# Eigen's kernels for AVX-512 took 47 of the 64 CPU seconds in which gcc 12 compiled Horovod's `gaussian_process.cc` with the
# headers of TensorFlow 2.21. Only the autotuner uses them, with matrices of a few rows.
PREPROCESSOR = "-DNDEBUG -DEIGEN_USE_AVX512_GEMM_KERNELS=0 -DEIGEN_USE_AVX512_TRSM_KERNELS=0"


def toolchain_file(frameworks: Sequence[str], mpicxx: str, runpath: tuple[str, ...], *, gpu: bool = False) -> str:
    """The text of a CMake toolchain file (CMake reads the path from `CMAKE_TOOLCHAIN_FILE`).

    It turns off debug information (the library has 1.4 MB instead of 40 MB and links in a second), names the MPI
    wrapper, and sets the RUNPATH of the library. Otherwise CMake would write absolute paths of the build environment
    into the RUNPATH, and a reused wheel must not point there.
    """
    return "".join(
        (
            f'set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O3 {PREPROCESSOR}" CACHE STRING "" FORCE)\n',
            f'set(MPI_CXX_COMPILER "{quote_cmake(mpicxx)}" CACHE FILEPATH "" FORCE)\n',
            "set(MPI_CXX_SKIP_MPICXX ON)\n",
            # Keeps a CPU build free of CUDA: if Horovod finds a CUDA toolkit on the machine, it compiles with it.
            *(
                ()
                if gpu
                else (
                    'set(CMAKE_CUDA_COMPILER "" CACHE FILEPATH "" FORCE)\n',
                    "set(CMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit ON)\n",
                )
            ),
            "set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)\n",
            f'set(CMAKE_INSTALL_RPATH "{";".join(map(quote_cmake, runpath))}")\n',
            *(
                UNITY_BUILD.replace("provision_unity_build", f"provision_unity_build{number or ''}")
                .replace("@TARGET@", name)
                .replace("@PACKAGE@", FRAMEWORKS[name].package)
                for number, name in enumerate(frameworks)
            ),
            *([QUICK_LINK] if "tensorflow" in frameworks else []),
        )
    )


CMAKE_WRAPPER = """\
#!/usr/bin/env bash
# Written by provision. Horovod's setup.py passes VERBOSE=1 to the build tool. make accepts that, but ninja fails.
set -euo pipefail
arguments=()
for argument in "$@"; do
  [ "$argument" = VERBOSE=1 ] || arguments+=("$argument")
done
exec cmake "${arguments[@]}"
"""


def runpath(
    frameworks: Sequence[str], mpi_libraries: tuple[str, ...], nccl_library: str | None = None
) -> tuple[str, ...]:
    """The folders in which the built libraries look for other libraries: the frameworks', then MPI, then a shared NCCL.

    They are relative to the library in site-packages/horovod/PACKAGE/; an MPI of the prefix is in its lib/.
    """
    of_mpi = dict.fromkeys(map(os.path.dirname, mpi_libraries)) or ("$ORIGIN/../../../..",)
    nccl = (os.path.dirname(nccl_library),) if nccl_library else ()
    return (*(f"$ORIGIN/../../{LIBRARIES[name]}" for name in frameworks), *of_mpi, *nccl)
