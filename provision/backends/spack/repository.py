"""The package repository that the tool generates: what Spack builds by the route `wheels`, as texts of files. Pure.

Three packages are built. `py-pip` is pip's wheel; `py-tensorflow` is the whole lock of the stack, installed by that pip into
a virtual environment of the site's Python with the lock's hashes; `py-horovod` is compiled from its source package with our
patches, with the same flags and tools as in a virtual environment.

The other packages describe what the site provides. They replace Spack's own packages of the same names, none of which is ever
built here: those have 690 possible dependencies, and the solver looks at all of them (27 CPU seconds instead of one).
`compiler-wrapper` and `glibc` are never used, but Spack 1.x looks for them by name. Our packages run the site's compiler
directly: they depend on the package `gcc`, not on the language `cxx`, so Spack's wrapper, whose source is on GitHub, is not
needed.

Source of the facts: Spack 1.2.0.dev0 (commit 9cf6633), `solver/asp.py`, `compilers/libraries.py`, `build_environment.py`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from provision.backends.spack.pip_wheel import PIP_SHA256, PIP_VERSION, PIP_WHEEL, refuse_old_python
from provision.horovod import flags
from provision.horovod.patches import select_patches
from provision.model.lock import Lock, Pin
from provision.model.patch import Patch
from provision.model.request import Request

NAMESPACE = "provision"
# Its folder, below that of spack.yaml.
REPOSITORY = f"spack_repo/{NAMESPACE}"
RUN = '("build", "link", "run")'

HEAD = "# Written by provision for the stack `{stack}` and Python {minor}. `provision spack show` writes it again.\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What the packages of one stack are made of: the locks, and Horovod's source with the patches that apply."""

    stack: str
    minor: str
    framework: Pin
    lock: Lock
    mpi_lock: Lock | None
    tools: Lock | None
    horovod: Pin | None
    patches: tuple[Patch, ...]
    gpu: bool
    compiler: str
    """Spack's name of the compiler: `gcc` or `llvm`."""

    @property
    def requirements(self) -> str:
        """The packages of the environment, as text for pip: the stack's lock and that of an MPI from a wheel."""
        locks = [lock for lock in (self.lock, self.mpi_lock) if lock]
        return "".join(lock.without("horovod") for lock in locks)

    @property
    def downloads(self) -> str:
        """What Spack itself fetches, as text for pip: pip's wheel, and Horovod's source package."""
        pip = f"pip=={PIP_VERSION} --hash=sha256:{PIP_SHA256}\n"
        return pip + (self.horovod.text if self.horovod else "")

    @property
    def root_spec(self) -> str:
        """The package that the environment is made for."""
        return f"py-horovod@{self.horovod.version}" if self.horovod else f"py-tensorflow@{self.framework.version}"


def sources_of(request: Request, compiler: str = "gcc") -> Sources:
    """The sources of a request's stack; `compiler` is Spack's name of the compiler.

    Raises:
        PlanError: the Python is too old, or the lock does not pin what the stack names.
    """
    stack = request.stack
    refuse_old_python(request)
    framework = request.pinned(stack.framework.package, stack.framework.version)
    gpu = request.arch.gpu is not None
    return Sources(
        stack=stack.name,
        minor=request.minor,
        framework=framework,
        lock=request.lock,
        mpi_lock=request.mpi_lock,
        tools=request.build_lock if stack.horovod else None,
        horovod=request.pinned("horovod", stack.horovod) if stack.horovod else None,
        patches=select_patches(request.patches, framework.version, gpu=gpu) if stack.horovod else (),
        gpu=gpu,
        compiler=compiler,
    )


def repository_files(sources: Sources) -> dict[str, str]:
    """The files of the repository: their paths below its folder, and their texts."""
    head = HEAD.format(stack=sources.stack, minor=sources.minor)
    files = {
        "repo.yaml": f"{head}repo:\n  namespace: {NAMESPACE}\n  api: v2.0\n",
        "sources.txt": sources.downloads,
        "packages/py_pip/package.py": head + PY_PIP.format(version=PIP_VERSION, sha256=PIP_SHA256, wheel=PIP_WHEEL),
        "packages/py_tensorflow/requirements.txt": sources.requirements,
        "packages/py_tensorflow/package.py": head + _tensorflow(sources),
    }
    if sources.horovod and sources.tools:
        folder = "packages/py_horovod"
        files |= {f"{folder}/{patch.name}": patch.text for patch in sources.patches}
        files[f"{folder}/build.txt"] = sources.tools.without("horovod")
        files[f"{folder}/toolchain.cmake"] = flags.toolchain_file("@MPICXX@", ("@RUNPATH@",), gpu=sources.gpu)
        files[f"{folder}/cmake"] = flags.CMAKE_WRAPPER
        files[f"{folder}/package.py"] = head + _horovod(sources)
    for name in NEVER_BUILT:
        files[f"packages/{name.replace('-', '_')}/package.py"] = head + _external(name)
    return dict(sorted(files.items()))


def digest(files: dict[str, str]) -> str:
    """The sha256 of all files of a repository."""
    whole = hashlib.sha256()
    for name, text in sorted(files.items()):
        whole.update(f"{name}\0{len(text)}\0{text}".encode())
    return whole.hexdigest()


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _tensorflow(sources: Sources) -> str:
    count = sum(len(lock.pins) for lock in (sources.lock, sources.mpi_lock) if lock) - (sources.horovod is not None)
    return PY_TENSORFLOW.format(
        package=sources.framework.name,
        version=sources.framework.version,
        minor=sources.minor,
        count=count,
        lock=sources.lock.sha256,
        sha256=_sha256(sources.requirements),
        wheel=PIP_WHEEL,
    )


def _horovod(sources: Sources) -> str:
    assert sources.horovod and sources.tools  # the caller asks only then
    (source,) = (text.removeprefix("sha256:") for text in sources.horovod.hashes[:1])
    patched = "".join(f'    patch("{patch.name}")  # {patch.subject}\n' for patch in sources.patches)
    environ = flags.build_environ(cxx="", arch_flags="", patches=len(sources.patches))
    switches = {name: value for name, value in environ.items() if name not in ("CXX", "HOROVOD_BUILD_ARCH_FLAGS")}
    texts = {
        "build.txt": sources.tools.without("horovod"),
        "cmake": flags.CMAKE_WRAPPER,
        "toolchain.cmake": flags.toolchain_file("@MPICXX@", ("@RUNPATH@",), gpu=sources.gpu),
    }
    used = {
        sources.compiler: '"build"',
        **({} if sources.mpi_lock else {"mpi": RUN}),
        **({"cuda": RUN, "nccl": RUN} if sources.gpu else {}),
    }
    return PY_HOROVOD.format(
        version=sources.horovod.version,
        sha256=source,
        minor=sources.minor,
        framework=sources.framework.version,
        patches=patched,
        depends="".join(f'    depends_on("{name}", type={types})\n' for name, types in used.items()),
        switches="".join(f'        "{name}": "{value}",\n' for name, value in sorted(switches.items())),
        digests="".join(f'        "{name}": "{_sha256(text)}",\n' for name, text in texts.items()),
        wheel=PIP_WHEEL,
    )


def _external(name: str) -> str:
    """A package that is never built: it only says what Spack must know of an external."""
    words = "".join(word.capitalize() for word in name.split("-"))
    return EXTERNAL.format(name=words, extra=NEVER_BUILT[name])


# Spack asks a compiler for its C compiler and its libc before it solves, and knows compilers by this tag.
COMPILER = """\
    tags = ["compiler"]
    verbose_flags = "-v"
    implicit_rpath_libs = ["libgcc"]

    @property
    def cc(self):
        return self.spec.extra_attributes["compilers"]["c"]

    @property
    def cxx(self):
        return self.spec.extra_attributes["compilers"]["cxx"]
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
import os

from spack.package import *

# A folder with the files of `sources.txt`, for a Spack that has no mirror with them.
SOURCES = os.environ.get("PROVISION_SOURCES", "/PROVISION_SOURCES-is-not-set")


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

PY_TENSORFLOW = '''\
import hashlib
import os

from spack.package import *


class PyTensorflow(Package):
    """{package} {version} with the {count} packages of its lock, in a virtual environment of the site's Python."""

    homepage = "https://www.tensorflow.org"
    has_code = False
    version("{version}")

    depends_on("python@{minor}", type=("build", "link", "run"))
    depends_on("py-pip", type="build")

    # The sha256 of the stack's lock, and of `requirements.txt`, which has its packages without Horovod.
    lock_sha256 = "{lock}"
    requirements_sha256 = "{sha256}"

    def install(self, spec, prefix):
        requirements = join_path(self.package_dir, "requirements.txt")
        with open(requirements, "rb") as file:
            if hashlib.sha256(file.read()).hexdigest() != self.requirements_sha256:
                raise InstallError(f"{{requirements}} is not the file that this package was written with")
        Executable(spec["python"].extra_attributes["executable"])("-m", "venv", "--without-pip", prefix)
        python = Executable(join_path(prefix.bin, "python"))
        # pip compares every file with the hashes of the lock. Without a wheelhouse it asks the package index.
        wheelhouse = os.environ.get("PROVISION_WHEELHOUSE")
        source = ("--no-index", "--find-links", wheelhouse) if wheelhouse else ()
        pip = join_path(spec["py-pip"].prefix, "{wheel}", "pip")
        options = ("--require-hashes", "--no-deps", "--no-compile", "--no-input", "--disable-pip-version-check")
        python(pip, "install", *options, *source, "-r", requirements)
        # Without bytecode every rank compiles at every start, and cannot keep the result.
        python("-m", "compileall", "-q", "-j", str(make_jobs), join_path(prefix, "lib"))
'''

PY_HOROVOD = '''\
import hashlib
import os

from spack.package import *

# A folder with the files of `sources.txt`, for a Spack that has no mirror with them.
SOURCES = os.environ.get("PROVISION_SOURCES", "/PROVISION_SOURCES-is-not-set")


class PyHorovod(Package):
    """Horovod {version} for TensorFlow {framework} over the site's MPI, from its source package with provision's patches."""

    homepage = "https://horovod.ai"
    version(
        "{version}",
        sha256="{sha256}",
        url=f"file://{{SOURCES}}/horovod-{version}.tar.gz",
    )
{patches}
    depends_on("python@{minor}", type=("build", "link", "run"))
    depends_on("py-pip", type="build")
    depends_on("py-tensorflow@{framework}", type=("build", "link", "run"))
{depends}
    # Every switch is explicit, so the result does not depend on what the build happens to find.
    switches = {{
{switches}    }}
    # The sha256 of the files beside this one.
    beside = {{
{digests}    }}

    def read(self, name):
        with open(join_path(self.package_dir, name), encoding="utf-8") as file:
            text = file.read()
        if hashlib.sha256(text.encode()).hexdigest() != self.beside[name]:
            raise InstallError(f"{{name}} is not the file that this package was written with")
        return text

    def install(self, spec, prefix):
        tensorflow, stage = spec["py-tensorflow"].prefix, self.stage.path
        python = Executable(join_path(tensorflow.bin, "python"))
        pip = join_path(spec["py-pip"].prefix, "{wheel}", "pip")
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
            MAKEFLAGS=f"-j{{make_jobs}}",
            PATH=os.pathsep.join((join_path(tools, "bin"), tensorflow.bin, os.environ["PATH"])),
        )
        wheels = join_path(stage, "wheel")
        flags = ("--verbose", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", wheels)
        python(pip, "wheel", *options, *flags, self.stage.source_path)
        (wheel,) = find(wheels, "horovod-*.whl")
        python(pip, "install", *options, "--no-index", "--no-deps", "--no-compile", f"--prefix={{prefix}}", wheel)
        python("-m", "compileall", "-q", "-j", str(make_jobs), join_path(prefix, "lib"))

    def write(self, path, text):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
'''
