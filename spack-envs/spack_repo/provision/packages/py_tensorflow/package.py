# Written by provision: `provision spack show` writes it again.
import hashlib
import os
import re

from spack.package import *


class PyTensorflow(Package):
    """TensorFlow with all packages of a lock, in a virtual environment of the site's Python, which compiles others."""

    homepage = "https://www.tensorflow.org"
    has_code = False

    version("1.15.2")
    version("2.11.1")
    version("2.13.1")
    version("2.15.1")
    version("2.21.0")

    variant(
        "lock",
        default="tensorflow-2.21.0-gpu-py311",
        values=(
            "tensorflow-1.15.2-intel-py37",
            "tensorflow-2.11.1-gpu-py310",
            "tensorflow-2.11.1-py310",
            "tensorflow-2.13.1-py311",
            "tensorflow-2.15.1-gpu-py311",
            "tensorflow-2.15.1-py311",
            "tensorflow-2.21.0-gpu-py311",
        ),
        description="the lock of a stack for a Python, in the folder `locks` of this repository",
    )
    depends_on("py-pip", type="build")

    with when("lock=tensorflow-1.15.2-intel-py37"):
        requires("@1.15.2")
        depends_on("python@3.7", type=("build", "link", "run"))

    @when("lock=tensorflow-1.15.2-intel-py37")
    def locks(self):
        return {
            "tensorflow-1.15.2-intel-py37.txt": "c408d85ffd03ed706e09d8022388c25ea6e2c6ff094121ced78c12c778eccbde",
        }

    with when("lock=tensorflow-2.11.1-gpu-py310"):
        requires("@2.11.1")
        depends_on("python@3.10", type=("build", "link", "run"))

    @when("lock=tensorflow-2.11.1-gpu-py310")
    def locks(self):
        return {
            "tensorflow-2.11.1-gpu-py310.txt": "a9c6ba3568d0f4a710a1582e2471a399ab32abfe06e307d425be6267a45a4374",
        }

    with when("lock=tensorflow-2.11.1-py310"):
        requires("@2.11.1")
        depends_on("python@3.10", type=("build", "link", "run"))

    @when("lock=tensorflow-2.11.1-py310")
    def locks(self):
        return {
            "tensorflow-2.11.1-py310.txt": "6def3a7e331c180d4c0651ad7dca5d86b250c6710968faa066b29f5730d25529",
        }

    with when("lock=tensorflow-2.13.1-py311"):
        requires("@2.13.1")
        depends_on("python@3.11", type=("build", "link", "run"))

    @when("lock=tensorflow-2.13.1-py311")
    def locks(self):
        return {
            "tensorflow-2.13.1-py311.txt": "ff19eeda57141bb07e7b4be8c959bf9c8a92258a67783bad20a7d7ea3a79a543",
        }

    with when("lock=tensorflow-2.15.1-gpu-py311"):
        requires("@2.15.1")
        depends_on("python@3.11", type=("build", "link", "run"))

    @when("lock=tensorflow-2.15.1-gpu-py311")
    def locks(self):
        return {
            "tensorflow-2.15.1-gpu-py311.txt": "2120ce7e7b1ade293e9315d71380641fac8890a95913aff7c92536e7c3ca23a7",
        }

    with when("lock=tensorflow-2.15.1-py311"):
        requires("@2.15.1")
        depends_on("python@3.11", type=("build", "link", "run"))

    @when("lock=tensorflow-2.15.1-py311")
    def locks(self):
        return {
            "tensorflow-2.15.1-py311.txt": "feac9136fe5ddbd385aeb8fbf1beb2dfa982af7dfca0dbcaf9380fb3e3cad802",
        }

    with when("lock=tensorflow-2.21.0-gpu-py311"):
        requires("@2.21.0")
        depends_on("python@3.11", type=("build", "link", "run"))

    @when("lock=tensorflow-2.21.0-gpu-py311")
    def locks(self):
        return {
            "tensorflow-2.21.0-gpu-py311.txt": "ef6ad7dce0234599921e91316aff327929e9956cd2916d237c5a54b9cbacb1a7",
        }

    def read_lock(self, name, sha256):
        """The packages of a lock without those that are not installed but compiled."""
        path = os.path.normpath(join_path(self.package_dir, "..", "..", "locks", name))
        with open(path, "rb") as file:
            content = file.read()
        if hashlib.sha256(content).hexdigest() != sha256:
            raise InstallError(f"{path} is not the file that this package was written with")
        return re.sub(r"^(?:horovod|mpi4py)[=[].*\n(?:[ \t]+.*\n)*", "", content.decode(), flags=re.MULTILINE)

    def install(self, spec, prefix):
        requirements = join_path(self.stage.path, "requirements.txt")
        with open(requirements, "w", encoding="utf-8") as file:
            file.writelines(self.read_lock(*lock) for lock in self.locks().items())
        Executable(spec["python"].extra_attributes["executable"])("-m", "venv", "--without-pip", prefix)
        python = Executable(join_path(prefix.bin, "python"))
        # pip compares every file with the hashes of the lock. Without a wheelhouse it asks the package index.
        wheelhouse = os.environ.get("PROVISION_WHEELHOUSE")
        source = ("--no-index", "--find-links", wheelhouse) if wheelhouse else ()
        pip = join_path(spec["py-pip"].prefix, "pip-24.0-py3-none-any.whl", "pip")
        options = ("--require-hashes", "--no-deps", "--no-compile", "--no-input", "--disable-pip-version-check")
        python(pip, "install", *options, *source, "-r", requirements)
        # Without bytecode every rank compiles at every start, and cannot keep the result.
        python("-m", "compileall", "-q", "-j", str(make_jobs), join_path(prefix, "lib"))

    def compile(self, package, tools, environ):
        """Install a package from its source, compiled in this environment with the tools of a lock and these variables."""
        stage, prefix = package.stage.path, package.prefix
        python = Executable(join_path(self.prefix.bin, "python"))
        pip = join_path(package.spec["py-pip"].prefix, "pip-24.0-py3-none-any.whl", "pip")
        options = ("--no-input", "--disable-pip-version-check", "--no-cache-dir")
        wheelhouse = os.environ.get("PROVISION_WHEELHOUSE")
        source = ("--no-index", "--find-links", wheelhouse) if wheelhouse else ()

        # CMake and others, as locked, in an environment of their own.
        python("-m", "venv", "--without-pip", join_path(stage, "tools"))
        build = join_path(stage, "build.txt")
        with open(build, "w", encoding="utf-8") as file:
            file.write(self.read_lock(*tools))
        Executable(join_path(stage, "tools", "bin", "python"))(
            pip, "install", "--require-hashes", "--no-deps", *options, *source, "-r", build
        )
        os.environ.update(
            environ,
            CMAKE_BUILD_PARALLEL_LEVEL=str(make_jobs),
            # If MAKEFLAGS is set, Horovod's setup.py leaves the number of jobs to CMake, and CMake reads the variable above.
            MAKEFLAGS=f"-j{make_jobs}",
            PATH=os.pathsep.join((join_path(stage, "tools", "bin"), self.prefix.bin, os.environ["PATH"])),
        )
        wheels = join_path(stage, "wheel")
        flags = ("--verbose", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", wheels)
        python(pip, "wheel", *options, *flags, package.stage.source_path)
        (wheel,) = find(wheels, "*.whl")
        python(pip, "install", *options, "--no-index", "--no-deps", "--no-compile", f"--prefix={prefix}", wheel)
        python("-m", "compileall", "-q", "-j", str(make_jobs), join_path(prefix, "lib"))
