"""The texts of the generated packages, each a package.py of Spack with gaps that `repository.py` fills. Pure."""

from __future__ import annotations

# Spack asks a compiler for its C compiler and its libc before it solves, and knows compilers by this tag.
COMPILER = """\
    tags = ["compiler"]
    provides("site-compiler")
    verbose_flags = "-v"
    implicit_rpath_libs = ["libgcc"]

    @property
    def cc(self):
        return self.spec.extra_attributes["compilers"]["c"]

    @property
    def cxx(self):
        return self.spec.extra_attributes["compilers"]["cxx"]
"""
# How the packages begin that Spack fetches a source of.
FETCHES = """\
import os

from spack.package import *

# A folder with the files that `sources/` names, for a Spack that has no mirror with them.
SOURCES = os.environ.get("PROVISION_SOURCES", "/PROVISION_SOURCES-is-not-set")


"""
# The packages of the site, by their names in Spack, with what Spack must know of each.
NEVER_BUILT = {
    "python": "",
    "gcc": COMPILER,
    "llvm": COMPILER,
    "cuda": "",
    "nccl": "",
    "glibc": '    tags = ["runtime"]\n    provides("libc")\n',
    "compiler-wrapper": '    tags = ["runtime"]\n',
    "mpich": '    provides("mpi")\n',
    "openmpi": '    provides("mpi")\n',
}

EXTERNAL = '''\
from spack.package import *


class {name}(Package):
    """What the site provides under this name: it is an external and is never built."""

    has_code = False
    version("1")
{extra}'''

PY_PIP = '''\
class PyPip(Package):
    """pip as its wheel, which Python runs without installing it."""

    homepage = "https://pip.pypa.io"
    version(
        "{version}",
        sha256="{sha256}",
        url=f"file://{{SOURCES}}/{wheel}",
        expand=False,
    )

    def install(self, spec, prefix):
        install(self.stage.archive_file, join_path(prefix, "{wheel}"))
'''

PY_FRAMEWORK = '''\
import hashlib
import os
import re

from spack.package import *


class {name}(Package):
    """{title} with all packages of a lock, in a virtual environment of the site's Python, which compiles others."""

    homepage = "{homepage}"
    has_code = False

{versions}
    variant(
        "lock",
        default="{default}",
        values=(
{values}        ),
        description="the lock of a stack for a Python, in the folder `locks` of this repository",
    )
    depends_on("py-pip", type="build")
{locks}
    def read_lock(self, name, sha256):
        """The packages of a lock without those that are not installed but compiled."""
        path = os.path.normpath(join_path(self.package_dir, "..", "..", "locks", name))
        with open(path, "rb") as file:
            content = file.read()
        if hashlib.sha256(content).hexdigest() != sha256:
            raise InstallError(f"{{path}} is not the file that this package was written with")
        return re.sub(r"^(?:{compiled})[=[].*\\n(?:[ \\t]+.*\\n)*", "", content.decode(), flags=re.MULTILINE)

    def install(self, spec, prefix):
        requirements = join_path(self.stage.path, "requirements.txt")
        with open(requirements, "w", encoding="utf-8") as file:
            file.writelines(self.read_lock(*lock) for lock in self.locks().items())
        Executable(spec["python"].extra_attributes["executable"])("-m", "venv", "--without-pip", prefix)
        python = Executable(join_path(prefix.bin, "python"))
        # pip compares every file with the hashes of the lock. Without a wheelhouse it asks the package index.
        wheelhouse = os.environ.get("PROVISION_WHEELHOUSE")
        source = ("--no-index", "--find-links", wheelhouse) if wheelhouse else ()
        pip = join_path(spec["py-pip"].prefix, "{wheel}", "pip")
        options = ("--require-hashes", "--no-deps", "--no-compile", "--no-input", "--disable-pip-version-check")
        python(pip, "install", *options, *source, "-r", requirements)
        # Without bytecode every rank compiles at every start, and cannot keep the result.
        python("-m", "compileall", "-q", {other_python}"-j", str(make_jobs), join_path(prefix, "lib"))

    def compile(self, package, tools, environ):
        """Install a package from its source, compiled in this environment with the tools of a lock and these variables."""
        stage, prefix = package.stage.path, package.prefix
        python = Executable(join_path(self.prefix.bin, "python"))
        pip = join_path(package.spec["py-pip"].prefix, "{wheel}", "pip")
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
            MAKEFLAGS=f"-j{{make_jobs}}",
            PATH=os.pathsep.join((join_path(stage, "tools", "bin"), self.prefix.bin, os.environ["PATH"])),
        )
        wheels = join_path(stage, "wheel")
        flags = ("--verbose", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", wheels)
        python(pip, "wheel", *options, *flags, package.stage.source_path)
        (wheel,) = find(wheels, "*.whl")
        python(pip, "install", *options, "--no-index", "--no-deps", "--no-compile", f"--prefix={{prefix}}", wheel)
        python("-m", "compileall", "-q", "-j", str(make_jobs), join_path(prefix, "lib"))
'''

# What a lock decides. Its digest is in a method, of which Spack's hash has the one that applies.
LOCK = """\

    with when("lock={lock}"):
        requires("@{version}")
        depends_on("python@{minor}", type=("build", "link", "run"))

    @when("lock={lock}")
    def locks(self):
        return {{
{files}        }}
"""

VERSION = """\
    version(
        "{version}",
        sha256="{sha256}",
        url=f"file://{{SOURCES}}/{file}",
    )
"""

TOOLS = """\
    @when("^python@{minor}")
    def tools(self):
        return "{name}", "{sha256}"

"""

PY_HOROVOD = '''\
class PyHorovod(Package):
    """Horovod for TensorFlow over MPI, from its source package with provision's patches."""

    homepage = "https://horovod.ai"
{versions}
    variant("cuda", default=False, description="operations on GPUs, with NCCL")
    variant("mpi", default="site", values=("site", "wheel"), description="the site's MPI, or one from a wheel of the lock")

{patches}
    depends_on("site-compiler", type="build")
    depends_on("py-pip", type="build")
    with default_args(type=("build", "link", "run")):
        depends_on("python")
        depends_on("py-tensorflow")
        depends_on("mpi", when="mpi=site")
        depends_on("cuda", when="+cuda")
        depends_on("nccl", when="+cuda")

    # Every switch is explicit, so the result does not depend on what the build happens to find.
    switches = {{
{switches}    }}
    cmake = r"""{cmake}"""

{tools}    @when("~cuda")
    def toolchain(self):
        return r"""{toolchain}"""

    @when("+cuda")
    def toolchain(self):
        return r"""{cuda_toolchain}"""

    def install(self, spec, prefix):
        tensorflow, stage = spec["py-tensorflow"].prefix, self.stage.path
        cmake = join_path(stage, "cmake")
        self.write(cmake, self.cmake)
        set_executable(cmake)

        mpicxx = join_path(tensorflow.bin, "mpicxx")
        packages = join_path(tensorflow.lib, f"python{{spec['python'].version.up_to(2)}}", "site-packages")
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
            self.write(join_path(stage, "nccl", "libnccl.so"), f'INPUT("{{library}}")\\n')
            os.environ["HOROVOD_NCCL_LIB"] = join_path(stage, "nccl")
        toolchain = join_path(stage, "toolchain.cmake")
        runpath = ";".join(dict.fromkeys(folders)).replace("$", "\\\\$")
        self.write(toolchain, self.toolchain().replace("@MPICXX@", mpicxx).replace("@RUNPATH@", runpath))

        environ = dict(
            self.switches,
            CXX=spec["site-compiler"].extra_attributes["compilers"]["cxx"],
            HOROVOD_CMAKE=cmake,
            CMAKE_GENERATOR="Ninja",
            CMAKE_TOOLCHAIN_FILE=toolchain,
        )
        if spec.patches:
            environ["HOROVOD_LOCAL_VERSION"] = f"provision.{{len(spec.patches)}}"
        spec["py-tensorflow"].package.compile(self, self.tools(), environ)

    def write(self, path, text):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
'''

# A package that the wrapper for C compiles and links.
PY_WITH_WRAPPER = '''\
class {title}(Package):
    """{name}, compiled against MPI from its source package."""

{versions}
    variant("mpi", default="site", values=("site", "wheel"), description="the site's MPI, or one from a wheel of the lock")

    depends_on("site-compiler", type="build")
    depends_on("py-pip", type="build")
    with default_args(type=("build", "link", "run")):
        depends_on("python")
        depends_on("py-tensorflow")
        depends_on("mpi", when="mpi=site")

{tools}    def install(self, spec, prefix):
        tensorflow, stage = spec["py-tensorflow"].prefix, self.stage.path
        mpicc, folders = join_path(tensorflow.bin, "mpicc"), [tensorflow.lib]
        if "mpi" in spec:
            mpicc = spec["mpi"].extra_attributes["compilers"]["c"]
            folders = [os.path.dirname(path) for path in spec["mpi"].extra_attributes["libraries"].split(":")]
        options = join_path(stage, "link.txt")
        with open(options, "w", encoding="utf-8") as file:
            file.writelines(f'-rpath="{{folder}}"\\n' for folder in dict.fromkeys(folders))
        minor = spec["python"].version.up_to(2)
        environ = {{name: text.replace("{{mpicc}}", mpicc) for name, text in {environ}.items()}}
        environ.update(
            CFLAGS=os.environ.get("HOROVOD_BUILD_ARCH_FLAGS", "") + " {quick}",
            # Before the Python's own folders, which may have another MPI.
            LDFLAGS=" ".join((*(f"'-L{{folder}}'" for folder in folders), f"'-Wl,@{{options}}'")),
            # Build tools such as Cython are imported, not started.
            PYTHONPATH=join_path(stage, "tools", "lib", f"python{{minor}}", "site-packages"),
        )
        spec["py-tensorflow"].package.compile(self, self.tools(), environ)
'''
