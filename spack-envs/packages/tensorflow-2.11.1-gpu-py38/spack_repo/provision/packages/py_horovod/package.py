# Written by provision for the stack `tensorflow-2.11.1-gpu` and Python 3.8. `provision spack show` writes it again.
import hashlib
import os

from spack.package import *

# A folder with the files of `sources.txt`, for a Spack that has no mirror with them.
SOURCES = os.environ.get("PROVISION_SOURCES", "/PROVISION_SOURCES-is-not-set")


class PyHorovod(Package):
    """Horovod 0.28.1 for TensorFlow 2.11.1 over the site's MPI, from its source package with provision's patches."""

    homepage = "https://horovod.ai"
    version(
        "0.28.1",
        sha256="92a43f5a94c43907a56805bad15f19700c62ffc83b7ca483f9e104e229f67ef0",
        url=f"file://{SOURCES}/horovod-0.28.1.tar.gz",
    )
    patch("0002-standard-headers.patch")  # common: include the standard headers that the sources use
    patch("0003-gloo-cmake-4.patch")  # gloo: a CMake policy version that CMake 4 still accepts
    patch("0004-plain-number-momentum.patch")  # keras callbacks: no momentum correction if the momentum is a plain number
    patch("0006-keras2-apply-gradients-averages.patch")  # keras: apply_gradients averages gradients that are not averaged yet
    patch("0007-refuse-other-optimizers.patch")  # keras: refuse an optimizer whose gradients would not be averaged
    patch("0008-pass-op-and-groups.patch")  # tensorflow: pass op and groups to the Keras optimizer
    patch("0019-flatbuffers-span.patch")  # flatbuffers: make the assignment of a span compile
    patch("0022-runner-refuses.patch")  # runner: refuses to start anything, and opens no server
    patch("0023-check-build-asks-once.patch")  # runner: --check-build asks the compiled library once, without importing a framework

    depends_on("python@3.8", type=("build", "link", "run"))
    depends_on("py-pip", type="build")
    depends_on("py-tensorflow@2.11.1", type=("build", "link", "run"))
    depends_on("gcc", type="build")
    depends_on("mpi", type=("build", "link", "run"))
    depends_on("cuda", type=("build", "link", "run"))
    depends_on("nccl", type=("build", "link", "run"))

    # Every switch is explicit, so the result does not depend on what the build happens to find.
    switches = {
        "HOROVOD_CPU_OPERATIONS": "MPI",
        "HOROVOD_LOCAL_VERSION": "provision.9",
        "HOROVOD_WITHOUT_GLOO": "1",
        "HOROVOD_WITHOUT_MXNET": "1",
        "HOROVOD_WITHOUT_NVTX": "1",
        "HOROVOD_WITHOUT_PYTORCH": "1",
        "HOROVOD_WITH_MPI": "1",
        "HOROVOD_WITH_TENSORFLOW": "1",
    }
    # The sha256 of the files beside this one.
    beside = {
        "build.txt": "1348b352be7617ffbfd4c55e3ddb62d266a75203438623e2f19ef8c256655755",
        "cmake": "105ea052f828466dfbe2675a246a5de5acd3b600bee4abd795a1a41cb884b997",
        "toolchain.cmake": "1af4e620b3527935f8e6133ce12b6e6835f117c98c15be6bf2d2a39c1762c500",
    }

    def read(self, name):
        with open(join_path(self.package_dir, name), encoding="utf-8") as file:
            text = file.read()
        if hashlib.sha256(text.encode()).hexdigest() != self.beside[name]:
            raise InstallError(f"{name} is not the file that this package was written with")
        return text

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
        self.write(build, self.read("build.txt"))
        Executable(join_path(tools, "bin", "python"))(
            pip, "install", "--require-hashes", "--no-deps", *options, *source, "-r", build
        )
        cmake = join_path(stage, "cmake")
        self.write(cmake, self.read("cmake"))
        set_executable(cmake)

        compiler = spec["gcc"] if "gcc" in spec else spec["llvm"]
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
        self.write(
            toolchain, self.read("toolchain.cmake").replace("@MPICXX@", mpicxx).replace("@RUNPATH@", runpath)
        )

        os.environ.update(self.switches)
        os.environ.update(
            CXX=compiler.extra_attributes["compilers"]["cxx"],
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
