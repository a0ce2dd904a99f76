# Written by provision: `provision spack show` writes it again.
import os

from spack.package import *

# A folder with the files of `sources.txt`, for a Spack that has no mirror with them.
SOURCES = os.environ.get("PROVISION_SOURCES", "/PROVISION_SOURCES-is-not-set")


class PyHorovod(Package):
    """Horovod for TensorFlow over MPI, from its source package with provision's patches."""

    homepage = "https://horovod.ai"
    version(
        "0.28.1",
        sha256="055a93c632729a369e78d864f111656fb845ecc9fed4991b7d0f3efaabacec7c",
        url=f"file://{SOURCES}/horovod-0.28.1.tar.gz",
    )

    variant("cuda", default=False, description="operations on GPUs, with NCCL")
    variant("mpi", default="site", values=("site", "wheel"), description="the site's MPI, or one from a wheel of the lock")

    patch("patches/0001-all.patch")  # what 0001-all.patch is for
    patch("patches/0003-gpus.patch", when="+cuda")  # what 0003-gpus.patch is for

    depends_on("site-compiler", type="build")
    depends_on("py-pip", type="build")
    with default_args(type=("build", "link", "run")):
        depends_on("python")
        depends_on("py-tensorflow")
        depends_on("mpi", when="mpi=site")
        depends_on("cuda", when="+cuda")
        depends_on("nccl", when="+cuda")

    # Every switch is explicit, so the result does not depend on what the build happens to find.
    switches = {
        "HOROVOD_CPU_OPERATIONS": "MPI",
        "HOROVOD_WITHOUT_GLOO": "1",
        "HOROVOD_WITHOUT_MXNET": "1",
        "HOROVOD_WITHOUT_NVTX": "1",
        "HOROVOD_WITHOUT_PYTORCH": "1",
        "HOROVOD_WITH_MPI": "1",
        "HOROVOD_WITH_TENSORFLOW": "1",
    }
    cmake = r"""#!/usr/bin/env bash
# Written by provision. Horovod's setup.py passes VERBOSE=1 to the build tool. make accepts that, but ninja fails.
set -euo pipefail
arguments=()
for argument in "$@"; do
  [ "$argument" = VERBOSE=1 ] || arguments+=("$argument")
done
exec cmake "${arguments[@]}"
"""

    @when("^python@3.11")
    def tools(self):
        return "build-py311.txt", "e7acc31e80a99ca6f3f2962bb81e5dcae095f3174c1a7ab257e6ace9d0d4d837"

    @when("~cuda")
    def toolchain(self):
        return r"""set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O3 -DNDEBUG -DEIGEN_USE_AVX512_GEMM_KERNELS=0 -DEIGEN_USE_AVX512_TRSM_KERNELS=0" CACHE STRING "" FORCE)
set(MPI_CXX_COMPILER "\@MPICXX@" CACHE FILEPATH "" FORCE)
set(MPI_CXX_SKIP_MPICXX ON)
set(CMAKE_CUDA_COMPILER "" CACHE FILEPATH "" FORCE)
set(CMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit ON)
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
set(CMAKE_INSTALL_RPATH "\@RUNPATH@")
function(provision_unity_build)
  if(TARGET tensorflow)
    set_target_properties(tensorflow PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 9)
    get_target_property(sources tensorflow SOURCES)
    list(FILTER sources INCLUDE REGEX "/horovod/tensorflow/[^/]*$")
    set_source_files_properties(${sources} TARGET_DIRECTORY tensorflow PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()
cmake_language(DEFER CALL provision_unity_build)
"""

    @when("+cuda")
    def toolchain(self):
        return r"""set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O3 -DNDEBUG -DEIGEN_USE_AVX512_GEMM_KERNELS=0 -DEIGEN_USE_AVX512_TRSM_KERNELS=0" CACHE STRING "" FORCE)
set(MPI_CXX_COMPILER "\@MPICXX@" CACHE FILEPATH "" FORCE)
set(MPI_CXX_SKIP_MPICXX ON)
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
set(CMAKE_INSTALL_RPATH "\@RUNPATH@")
function(provision_unity_build)
  if(TARGET tensorflow)
    set_target_properties(tensorflow PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 9)
    get_target_property(sources tensorflow SOURCES)
    list(FILTER sources INCLUDE REGEX "/horovod/tensorflow/[^/]*$")
    set_source_files_properties(${sources} TARGET_DIRECTORY tensorflow PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()
cmake_language(DEFER CALL provision_unity_build)
"""

    def install(self, spec, prefix):
        tensorflow, stage = spec["py-tensorflow"].prefix, self.stage.path
        python = Executable(join_path(tensorflow.bin, "python"))
        pip = join_path(spec["py-pip"].prefix, "pip-24.0-py3-none-any.whl", "pip")
        options = ("--no-input", "--disable-pip-version-check", "--no-cache-dir")
        wheelhouse = os.environ.get("PROVISION_WHEELHOUSE")
        source = ("--no-index", "--find-links", wheelhouse) if wheelhouse else ()

        # CMake and ninja, as locked, in an environment of their own.
        tools = join_path(stage, "tools")
        python("-m", "venv", "--without-pip", tools)
        build = join_path(stage, "build.txt")
        self.write(build, spec["py-tensorflow"].package.read_lock(*self.tools()))
        Executable(join_path(tools, "bin", "python"))(
            pip, "install", "--require-hashes", "--no-deps", *options, *source, "-r", build
        )
        cmake = join_path(stage, "cmake")
        self.write(cmake, self.cmake)
        set_executable(cmake)

        mpicxx = join_path(tensorflow.bin, "mpicxx")
        packages = join_path(tensorflow.lib, f"python{spec['python'].version.up_to(2)}", "site-packages")
        folders = ["$ORIGIN/../../tensorflow", join_path(packages, "tensorflow")]
        if "mpi" in spec:
            mpicxx = spec["mpi"].extra_attributes["compilers"]["cxx"]
            folders += [os.path.dirname(path) for path in spec["mpi"].extra_attributes["libraries"].split(":")]
        else:
            folders += ["$ORIGIN/../../../..", tensorflow.lib]
        if "nccl" in spec and os.environ.get("HOROVOD_NCCL_LINK") == "SHARED":
            library = spec["nccl"].extra_attributes["library"]
            folders.append(os.path.dirname(library))
            # The NCCL wheel has only `libnccl.so.2`, but CMake looks for `libnccl.so`.
            mkdirp(join_path(stage, "nccl"))
            self.write(join_path(stage, "nccl", "libnccl.so"), f'INPUT("{library}")\n')
            os.environ["HOROVOD_NCCL_LIB"] = join_path(stage, "nccl")
        toolchain = join_path(stage, "toolchain.cmake")
        runpath = ";".join(dict.fromkeys(folders)).replace("$", "\\$")
        self.write(toolchain, self.toolchain().replace("@MPICXX@", mpicxx).replace("@RUNPATH@", runpath))

        os.environ.update(self.switches)
        if spec.patches:
            os.environ["HOROVOD_LOCAL_VERSION"] = f"provision.{len(spec.patches)}"
        os.environ.update(
            CXX=spec["site-compiler"].extra_attributes["compilers"]["cxx"],
            HOROVOD_CMAKE=cmake,
            CMAKE_GENERATOR="Ninja",
            CMAKE_TOOLCHAIN_FILE=toolchain,
            CMAKE_BUILD_PARALLEL_LEVEL=str(make_jobs),
            # If MAKEFLAGS is set, Horovod's setup.py leaves the number of jobs to CMake, and CMake reads the variable above.
            MAKEFLAGS=f"-j{make_jobs}",
            PATH=os.pathsep.join((join_path(tools, "bin"), tensorflow.bin, os.environ["PATH"])),
        )
        wheels = join_path(stage, "wheel")
        flags = ("--verbose", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", wheels)
        python(pip, "wheel", *options, *flags, self.stage.source_path)
        (wheel,) = find(wheels, "horovod-*.whl")
        python(pip, "install", *options, "--no-index", "--no-deps", "--no-compile", f"--prefix={prefix}", wheel)
        python("-m", "compileall", "-q", "-j", str(make_jobs), join_path(prefix, "lib"))

    def write(self, path, text):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
