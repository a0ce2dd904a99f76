# Written by provision: `provision spack show` writes it again.
import os

from spack.package import *

# A folder with the files that `sources/` names, for a Spack that has no mirror with them.
SOURCES = os.environ.get("PROVISION_SOURCES", "/PROVISION_SOURCES-is-not-set")


class PyHorovod(Package):
    """Horovod for TensorFlow over MPI, from its source package with provision's patches."""

    homepage = "https://horovod.ai"
    version(
        "0.28.1",
        sha256="92a43f5a94c43907a56805bad15f19700c62ffc83b7ca483f9e104e229f67ef0",
        url=f"file://{SOURCES}/horovod-0.28.1.tar.gz",
    )

    variant("cuda", default=False, description="operations on GPUs, with NCCL")
    variant("mpi", default="site", values=("site", "wheel"), description="the site's MPI, or one from a wheel of the lock")

    patch("patches/0001-xla-source-for-gpu-only.patch", when="^py-tensorflow@2.21.0")  # tensorflow: compile the XLA operations only if they can register and compile
    patch("patches/0002-standard-headers.patch")  # common: include the standard headers that the sources use
    patch("patches/0003-gloo-cmake-4.patch")  # gloo: a CMake policy version that CMake 4 still accepts
    patch("patches/0004-plain-number-momentum.patch", when="^py-tensorflow@2.11.1,2.13.1,2.15.1,2.21.0")  # keras callbacks: no momentum correction if the momentum is a plain number
    patch("patches/0005-keras2-load-keras-file.patch", when="^py-tensorflow@2.13.1,2.15.1,2.21.0")  # keras: load a `.keras` file with an optimizer that averages
    patch("patches/0006-keras2-apply-gradients-averages.patch")  # keras: apply_gradients averages gradients that are not averaged yet
    patch("patches/0007-refuse-other-optimizers.patch")  # keras: refuse an optimizer whose gradients would not be averaged
    patch("patches/0008-pass-op-and-groups.patch")  # tensorflow: pass op and groups to the Keras optimizer
    patch("patches/0009-variable-references.patch", when="^py-tensorflow@2.21.0")  # tensorflow: references to the variables of any Keras
    patch("patches/0010-tape-and-broadcast.patch", when="^py-tensorflow@2.21.0")  # tensorflow: tape and broadcast_variables work on the TensorFlow variable under a Keras 3 one
    patch("patches/0011-backend-of-the-keras-in-use.patch", when="^py-tensorflow@2.21.0")  # keras: the backend of the Keras in use, and only TensorFlow's
    patch("patches/0012-keras3-optimizer.patch", when="^py-tensorflow@2.21.0")  # keras: a distributed optimizer and load_model for Keras 3
    patch("patches/0013-keras3-callbacks.patch", when="^py-tensorflow@2.21.0")  # keras callbacks: Keras 3
    patch("patches/0014-keras3-elastic-state.patch", when="^py-tensorflow@2.21.0")  # tensorflow elastic: the state of Keras 3 models and optimizers
    patch("patches/0015-keras3-sync-batch-norm.patch", when="^py-tensorflow@2.21.0")  # tensorflow: SyncBatchNormalization on Keras 3
    patch("patches/0016-groups-by-reference.patch", when="^py-tensorflow@2.21.0")  # tensorflow: group gradients by variable, not by the name of the variable
    patch("patches/0017-session-hook-without-estimator.patch", when="^py-tensorflow@2.21.0")  # tensorflow: BroadcastGlobalVariablesHook without the estimator
    patch("patches/0018-gpu-stream-from-its-handle.patch", when="+cuda ^py-tensorflow@2.15.1,2.21.0")  # tensorflow: ask the stream itself for its CUDA stream
    patch("patches/0019-flatbuffers-span.patch")  # flatbuffers: make the assignment of a span compile
    patch("patches/0020-sync-batch-norm-in-eager-models.patch", when="^py-tensorflow@1.15.2")  # tensorflow: SyncBatchNormalization in a Keras model that runs eagerly
    patch("patches/0021-variable-references-before-2.2.patch", when="^py-tensorflow@1.15.2")  # tensorflow: references to variables before TensorFlow 2.2
    patch("patches/0022-runner-refuses.patch")  # runner: refuses to start anything, and opens no server
    patch("patches/0023-check-build-asks-once.patch")  # runner: --check-build asks the compiled library once, without importing a framework
    patch("patches/0024-partial-optimizer-of-the-keras-in-use.patch", when="^py-tensorflow@2.21.0")  # keras: PartialDistributedOptimizer takes an optimizer of the Keras in use

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

    @when("^python@3.10")
    def tools(self):
        return "build-py310.txt", "82ae38092e999d70326b3a8a303170563cab8319f9907ccd7e270af32d318a33"

    @when("^python@3.11")
    def tools(self):
        return "build-py311.txt", "7ae73bc99979631cd1461fabf4482d6d45c3dc724a49c22cfc8c324c1978403b"

    @when("^python@3.7")
    def tools(self):
        return "build-py37.txt", "28e2c34e308a332c0fe9c7589c266ec303cb6e92406f52ca3d3cfecdfd3b300a"

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
    set_target_properties(tensorflow PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 13)
    get_target_property(sources tensorflow SOURCES)
    list(FILTER sources INCLUDE REGEX "/horovod/tensorflow/[^/]*$")
    set_source_files_properties(${sources} TARGET_DIRECTORY tensorflow PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()
cmake_language(DEFER CALL provision_unity_build)
function(provision_quick_link)
  if(TARGET tensorflow)
    set(stub "${CMAKE_BINARY_DIR}/empty.so")
    execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -shared -Wl,-soname,libtensorflow_cc.so.2 -o "${stub}" -x c++ /dev/null
                    COMMAND_ERROR_IS_FATAL ANY)
    get_target_property(libraries tensorflow LINK_LIBRARIES)
    string(REGEX REPLACE "[^; ]*/libtensorflow_cc\.so\.2" "-Wl,--push-state,--no-as-needed,${stub},--pop-state"
           libraries "${libraries}")
    set_target_properties(tensorflow PROPERTIES LINK_LIBRARIES "${libraries}")
  endif()
endfunction()
cmake_language(DEFER CALL provision_quick_link)
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
    set_target_properties(tensorflow PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 13)
    get_target_property(sources tensorflow SOURCES)
    list(FILTER sources INCLUDE REGEX "/horovod/tensorflow/[^/]*$")
    set_source_files_properties(${sources} TARGET_DIRECTORY tensorflow PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()
cmake_language(DEFER CALL provision_unity_build)
function(provision_quick_link)
  if(TARGET tensorflow)
    set(stub "${CMAKE_BINARY_DIR}/empty.so")
    execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -shared -Wl,-soname,libtensorflow_cc.so.2 -o "${stub}" -x c++ /dev/null
                    COMMAND_ERROR_IS_FATAL ANY)
    get_target_property(libraries tensorflow LINK_LIBRARIES)
    string(REGEX REPLACE "[^; ]*/libtensorflow_cc\.so\.2" "-Wl,--push-state,--no-as-needed,${stub},--pop-state"
           libraries "${libraries}")
    set_target_properties(tensorflow PROPERTIES LINK_LIBRARIES "${libraries}")
  endif()
endfunction()
cmake_language(DEFER CALL provision_quick_link)
"""

    def install(self, spec, prefix):
        tensorflow, stage = spec["py-tensorflow"].prefix, self.stage.path
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

        environ = dict(
            self.switches,
            CXX=spec["site-compiler"].extra_attributes["compilers"]["cxx"],
            HOROVOD_CMAKE=cmake,
            CMAKE_GENERATOR="Ninja",
            CMAKE_TOOLCHAIN_FILE=toolchain,
        )
        if spec.patches:
            environ["HOROVOD_LOCAL_VERSION"] = f"provision.{len(spec.patches)}"
        spec["py-tensorflow"].package.compile(self, self.tools(), environ)

    def write(self, path, text):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
