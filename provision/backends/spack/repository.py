"""The package repository that the tool generates: what Spack builds, as texts of files. Pure.

One repository serves any number of environments: all shipped ones share that of `spack-envs/`, and an environment below a root
has its own. Three packages are built. `py-pip` is pip's wheel; `py-tensorflow` (or `py-torch`) is a whole lock, which its
variant `lock` names, installed by that pip into a virtual environment of the site's Python with the lock's hashes; `py-horovod`
is compiled from its source package with our patches, with the same flags and tools as in a virtual environment, for TensorFlow.

Spack's hash of a package covers the text of its package.py and the digests of its patches, but no other file, and it leaves out
a method whose `@when` does not apply. So such methods have the digests of the locks: a lock that changes is another package for
the environments that use it, and for no others.

The other packages describe what the site provides. They replace Spack's own packages of the same names, none of which is ever
built here: those have 690 possible dependencies, and the solver looks at all of them (27 CPU seconds instead of one).
`compiler-wrapper` and `glibc` are never used, but Spack 1.x looks for them by name. Our packages run the site's compiler
directly: they depend on `site-compiler`, not on the language `cxx`, so Spack's wrapper, whose source is on GitHub, is not needed.

Source of the facts: Spack 1.2.0.dev0 (commit 9cf6633), `solver/asp.py`, `compilers/libraries.py`, `build_environment.py`,
`util/package_hash.py`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from provision.backends.spack import recipes
from provision.backends.venv.wheelhouse import source_name
from provision.errors import Fault, PlanError, raise_faults
from provision.horovod import flags
from provision.horovod.wheel import QUICK
from provision.knowledge.compilable import COMPILABLE
from provision.knowledge.frameworks.interface import FrameworkInterface
from provision.knowledge.frameworks.tensorflow import TENSORFLOW
from provision.model.lock import Lock, Pin
from provision.model.patch import Patch, select_patches
from provision.model.request import Request
from provision.profile.stack import Stack

NAMESPACE = "provision"
# Its folder: below that of spack.yaml, or below that of all environments that share it.
REPOSITORY = f"spack_repo/{NAMESPACE}"

HEAD = "# Written by provision: `provision spack show` writes it again.\n"
# The last pip that serves Python 3.7; it serves Python 3.13 too. Python 3.6, which two stacks allow, is refused.
PIP_VERSION = "24.0"
OLDEST_PYTHON = (3, 7)
PIP_SHA256 = "ba0d021a166865d2265246961bec0152ff124de910c5cc39f1156ce3fa7c69dc"
PIP_WHEEL = f"pip-{PIP_VERSION}-py3-none-any.whl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What the packages of one environment are made of: the locks, and Horovod's source with the patches that apply."""

    minor: str
    interface: FrameworkInterface
    framework: Pin
    lock: Lock
    mpi_lock: Lock | None
    tools: Lock | None
    horovod: Pin | None
    compiled: tuple[Pin, ...]
    patches: tuple[Patch, ...]
    gpu: bool

    @property
    def locks(self) -> dict[str, Lock]:
        """The locks of the framework's package by the names of their files: the stack's, and that of an MPI from a wheel."""
        return {_file(lock): lock for lock in (self.lock, self.mpi_lock) if lock}

    @property
    def variant(self) -> str:
        """The value of the variant `lock`, which decides everything about the framework's package."""
        return "-with-".join(name.removesuffix(".txt") for name in self.locks)

    @property
    def version(self) -> str:
        """The version of the framework's package: Spack refuses the `+` of `2.14.1+cpu`."""
        return self.framework.version.replace("+", "-")

    @property
    def root_specs(self) -> tuple[str, ...]:
        """The packages that the environment is made for: what is compiled, or else the framework."""
        pins = (*((self.horovod,) if self.horovod else ()), *self.compiled)
        return tuple(f"py-{pin.name}@{pin.version}" for pin in pins) or (f"{self.interface.spack}@{self.version}",)

    @property
    def built(self) -> dict[str, tuple[str, ...]]:
        """The packages that are built, and what spack.yaml requires of each apart from its target."""
        mpi = ("mpi=wheel",) if self.mpi_lock else ()
        horovod = (*(["+cuda"] if self.gpu else []), *mpi)
        return {
            "py-pip": (),
            self.interface.spack: (f"lock={self.variant}",),
            **({"py-horovod": horovod} if self.horovod else {}),
            **{f"py-{pin.name}": mpi for pin in self.compiled},
        }


def refuse_old_python(request: Request) -> None:
    """Raise a `PlanError` for a Python that is too old for the pip of the packages, before anything is downloaded or solved."""
    if tuple(int(part) for part in request.minor.split(".")) >= OLDEST_PYTHON:
        return
    oldest = ".".join(map(str, OLDEST_PYTHON))
    site, arch, stack = request.site, request.arch, request.stack
    newer = [minor for minor in stack.pythons if tuple(map(int, minor.split("."))) >= OLDEST_PYTHON]
    venv = f"`provision build --site {site.typed} --arch {arch.name} --stack {stack.name} --backend venv`"
    other = [f"`archs.{arch.name}.python` in `{site.origin}` can name a Python {newer[0]}"] if newer else []
    raise_faults(
        [
            Fault(
                "mismatch",
                "python",
                f"the backend `spack` needs Python {oldest} or newer, but arch `{arch.name}` has Python {request.minor}",
                evidence=(f"pip {PIP_VERSION}, with which Spack installs the wheels, does not run on it",),
                hint="; ".join([f"{venv} builds with this Python", *other]),
            )
        ]
    )


def refuse_compiling(stack: Stack) -> None:
    """Raise a `PlanError` for a stack with Horovod or mpi4py, and with another framework than TensorFlow, or one beside it."""
    if stack.from_source and stack.frameworks != (TENSORFLOW,):
        raise PlanError(
            f"the backend `spack` compiles {' and '.join(stack.from_source)} only for TensorFlow",
            evidence=[
                f"stack `{stack.name}` has "
                + " and ".join((stack.framework.title, *(one.title for one in stack.frameworks[1:])))
            ],
            hint="`--backend venv`",
        )


def sources_of(request: Request) -> Sources:
    """The sources of a request's stack.

    Raises:
        PlanError: the Python is too old, something cannot be compiled, or the lock does not pin what the stack names.
    """
    stack = request.stack
    refuse_old_python(request)
    refuse_compiling(stack)
    framework = request.pinned(stack.framework.package, stack.framework.version)
    gpu = request.arch.gpu is not None
    return Sources(
        minor=request.minor,
        interface=stack.framework.interface,
        framework=framework,
        lock=request.lock,
        mpi_lock=request.mpi_lock,
        tools=request.build_lock,
        horovod=request.source("horovod", stack.horovod) if stack.horovod else None,
        compiled=tuple(request.source(name, version) for name, version in stack.compiled),
        patches=select_patches(request.patches, {stack.framework.name: framework.version}, gpu=gpu)
        if stack.horovod
        else (),
        gpu=gpu,
    )


def repository_files(environments: Sequence[Sources]) -> dict[str, str]:
    """The files of the repository that serves these environments: their paths below its folder, and their texts."""
    compiled = [sources for sources in environments if sources.tools]
    locks = {name: lock for sources in environments for name, lock in sources.locks.items()}
    locks |= {_file(sources.tools): sources.tools for sources in compiled if sources.tools}
    packages = {
        "py-pip": recipes.FETCHES + recipes.PY_PIP.format(version=PIP_VERSION, sha256=PIP_SHA256, wheel=PIP_WHEEL)
    }
    for name in sorted({sources.interface.spack for sources in environments}):
        packages[name] = _framework([sources for sources in environments if sources.interface.spack == name])
    horovods = [sources for sources in compiled if sources.horovod]
    packages |= {"py-horovod": _horovod(horovods)} if horovods else {}
    with_wrapper = sorted({pin.name for sources in compiled for pin in sources.compiled})
    packages |= {f"py-{name}": _with_wrapper(name, compiled) for name in with_wrapper}
    # A package that is never built: it only says what Spack must know of an external.
    packages |= {
        name: recipes.EXTERNAL.format(name=_class_of(name), extra=extra) for name, extra in recipes.NEVER_BUILT.items()
    }
    return {
        "repo.yaml": f"{HEAD}repo:\n  namespace: {NAMESPACE}\n  api: v2.0\n",
        **{f"sources/{_file(sources.lock)}": _downloads(sources) for sources in environments},
        **{f"locks/{name}": lock.text for name, lock in sorted(locks.items())},
        **{
            f"packages/py_horovod/patches/{patch.name}": patch.text for sources in compiled for patch in sources.patches
        },
        **{f"packages/{name.replace('-', '_')}/package.py": HEAD + text for name, text in packages.items()},
    }


def digest(files: dict[str, str]) -> str:
    """The sha256 of all files of a repository."""
    whole = hashlib.sha256()
    for name, text in sorted(files.items()):
        whole.update(f"{name}\0{len(text)}\0{text}".encode())
    return whole.hexdigest()


def _file(lock: Lock) -> str:
    return PurePosixPath(lock.path).name


def _sorted(lines: Iterable[str]) -> str:
    return "".join(sorted(set(lines)))


def _downloads(sources: Sources) -> str:
    """What Spack itself fetches for an environment, as text for pip: pip's wheel, and the sources of what is compiled."""
    pip = f"pip=={PIP_VERSION} --hash=sha256:{PIP_SHA256}\n"
    return pip + _sorted(pin.text for pin in (sources.horovod, *sources.compiled) if pin)


def _framework(environments: Sequence[Sources]) -> str:
    """The package of the framework that these environments have."""
    by_lock, interface = {sources.variant: sources for sources in environments}, environments[0].interface
    return recipes.PY_FRAMEWORK.format(
        name=_class_of(interface.spack),
        title=interface.title,
        homepage=interface.homepage,
        other_python=f'"-x", r"{interface.other_python}", ' if interface.other_python else "",
        versions=_sorted(f'    version("{sources.version}")\n' for sources in environments),
        default=max(by_lock),
        values="".join(f'            "{lock}",\n' for lock in sorted(by_lock)),
        locks="".join(_lock(lock, sources) for lock, sources in sorted(by_lock.items())),
        compiled="|".join(("horovod", *COMPILABLE)),
        wheel=PIP_WHEEL,
    )


def _lock(name: str, sources: Sources) -> str:
    files = "".join(f'            "{name}": "{lock.sha256}",\n' for name, lock in sources.locks.items())
    return recipes.LOCK.format(lock=name, version=sources.version, minor=sources.minor, files=files)


def _with_wrapper(name: str, compiled: Sequence[Sources]) -> str:
    using = [sources for sources in compiled if name in {pin.name for pin in sources.compiled}]
    pins = (pin for sources in using for pin in sources.compiled if pin.name == name)
    return recipes.FETCHES + recipes.PY_WITH_WRAPPER.format(
        name=name,
        title=_class_of(f"py-{name}"),
        versions=_sorted(map(_version, pins)),
        tools=_tools(using),
        environ=json.dumps(COMPILABLE[name].environ),
        quick=QUICK,
    )


def _tools(compiled: Sequence[Sources]) -> str:
    """The lock of the build tools for each Python."""
    tools = {sources.minor: sources.tools for sources in compiled if sources.tools}
    return "".join(
        recipes.TOOLS.format(minor=minor, name=_file(lock), sha256=lock.sha256) for minor, lock in sorted(tools.items())
    )


def _horovod(compiled: Sequence[Sources]) -> str:
    patches = {patch.name: patch for sources in compiled for patch in sources.patches}
    environ = flags.build_environ(frameworks=["tensorflow"], cxx="", arch_flags="")
    switches = {name: value for name, value in environ.items() if name not in ("CXX", "HOROVOD_BUILD_ARCH_FLAGS")}
    toolchains = {
        gpu: flags.toolchain_file(["tensorflow"], "@MPICXX@", ("@RUNPATH@",), gpu=gpu) for gpu in (False, True)
    }
    return recipes.FETCHES + recipes.PY_HOROVOD.format(
        versions=_sorted(_version(sources.horovod) for sources in compiled if sources.horovod),
        patches="".join(_patch(patch, compiled) for _, patch in sorted(patches.items())),
        switches="".join(f'        "{name}": "{value}",\n' for name, value in sorted(switches.items())),
        cmake=flags.CMAKE_WRAPPER,
        toolchain=toolchains[False],
        cuda_toolchain=toolchains[True],
        tools=_tools(compiled),
    )


def _version(source: Pin) -> str:
    sha256 = source.hashes[0].removeprefix("sha256:")
    return recipes.VERSION.format(version=source.version, sha256=sha256, file=source_name(source))


def _patch(patch: Patch, compiled: Sequence[Sources]) -> str:
    """The directive of a patch: only the version of TensorFlow and GPUs decide whether it applies."""
    possible = {sources.framework.version for sources in compiled if sources.gpu or not patch.gpu_only}
    chosen = {sources.framework.version for sources in compiled if patch in sources.patches}
    words = ["+cuda"] if patch.gpu_only else []
    words += [f"^py-tensorflow@{','.join(sorted(chosen))}"] if chosen != possible else []
    when = f', when="{" ".join(words)}"' if words else ""
    return f'    patch("patches/{patch.name}"{when})  # {patch.subject}\n'


def _class_of(name: str) -> str:
    """Spack's name of a package's class."""
    return "".join(word.capitalize() for word in name.split("-"))
