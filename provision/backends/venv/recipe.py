"""A recipe: the operations of the steps that make one virtual environment: virtualenv, a locked install, Horovod.

Steps have a strict order: Horovod is compiled against the framework that is really in the environment.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from provision.backends.backend import Row
from provision.backends.venv.installer import Installer
from provision.backends.venv.wheelhouse import source_name
from provision.horovod.flags import CMAKE_WRAPPER, nccl_for_the_linker
from provision.horovod.wheel import Build
from provision.model.facts import Facts, Interpreter
from provision.model.layout import EnvironmentId, Layout
from provision.model.lock import Lock
from provision.model.operation import (
    Command,
    FetchSource,
    InstallWheel,
    KeepWheel,
    MakeReadable,
    Operation,
    PatchFile,
    PlaceData,
    Remove,
    Unpack,
    WriteFile,
)
from provision.model.request import Request


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Everything the steps of one environment are made from. `wheelhouse`: the only source of packages, if it has all."""

    request: Request
    facts: Facts
    horovod: Build | None
    layout: Layout
    environment: EnvironmentId
    wheelhouse: str | None

    @property
    def python(self) -> Interpreter:
        """The Python of the site from which the environment is made."""
        assert self.facts.python is not None  # the planner refuses a machine without Python
        return self.facts.python

    @cached_property
    def installer(self) -> Installer:
        """What makes environments and installs packages."""
        return Installer(
            python=self.python.executable,
            own_venv=self.python.own_venv,
            tool_python=self.facts.tool_python,
            uv=self.facts.uv,
            wheelhouse=self.wheelhouse,
        )

    @property
    def locks(self) -> tuple[Lock, ...]:
        """The locks of the environment, the framework's first; what each installs does not overlap."""
        return tuple(lock for lock in (self.request.lock, self.request.mpi_lock) if lock)

    @property
    def prefix(self) -> PurePosixPath:
        """The directory of the environment."""
        return self.layout.prefix(self.environment)

    @property
    def prefix_python(self) -> str:
        """The environment's interpreter."""
        return str(self.prefix / "bin" / "python")

    @property
    def site_packages(self) -> str:
        """Where the environment's packages stand."""
        return str(self.prefix / "lib" / f"python{self.python.minor}" / "site-packages")


def rows(recipe: Recipe, wheels: Collection[str], plan_text: str) -> tuple[Row, ...]:
    """The steps from nothing to a complete environment. `wheels` are the keys of the compiled wheels that are cached."""
    horovod, prefix, installer = recipe.horovod, str(recipe.prefix), recipe.installer
    records = recipe.layout.records_folder(recipe.environment)
    packages = sum(len(lock.pins) for lock in recipe.locks) - (horovod is not None)
    installs: list[Operation] = []
    for lock in recipe.locks:
        name = str(records / PurePosixPath(lock.path).name)
        installs.append(WriteFile(path=name, text=lock.without("horovod")))
        installs.append(Command(argv=installer.lock_argv(recipe.prefix_python, name)))
    return (
        Row(
            name="create",
            title=f"virtual environment with Python {recipe.python.minor}",
            reason=installer.python,
            # At its final place: virtual environments cannot be moved.
            operations=(
                Remove(path=prefix),
                Command(argv=installer.environment_argv(prefix, pip=True)),
                WriteFile(path=str(records / "plan.json"), text=plan_text),
            ),
        ),
        Row(
            name="install",
            title=f"{packages} locked packages by {installer.name}",
            reason="the framework before Horovod, which is compiled against it"
            if horovod
            else "the framework, without Horovod",
            operations=(*installs, PlaceData(site_packages=recipe.site_packages)),
            packages=packages,
            starts_over=True,
        ),
        Row(
            name="bytecode",
            title="bytecode of all packages",
            reason="otherwise every rank compiles at every start",
            operations=(compile_bytecode(recipe), *(() if horovod else (MakeReadable(path=prefix),))),
        ),
        *(_horovod_rows(recipe, horovod, wheels) if horovod else ()),
    )


def _horovod_rows(recipe: Recipe, horovod: Build, wheels: Collection[str]) -> tuple[Row, ...]:
    """Horovod's wheel compiled, unless it is cached (the cache outlives every prefix), and installed, which can be repeated."""
    key = horovod.key
    cached = f"wheels/{key} was compiled from the same source with the same flags" if key in wheels else None
    return (
        Row(
            name="compile",
            title=f"Horovod {horovod.version} from source",
            reason=f"no wheel {key} yet",
            operations=() if cached else compile_wheel(recipe, horovod),
            receipt="horovod",
            kept="installed",
            reuse=cached,
        ),
        Row(
            name="horovod",
            title="Horovod into the environment",
            reason=f"wheels/{key}",
            operations=(
                InstallWheel(key=key, command=Command(argv=recipe.installer.wheel_argv(recipe.prefix_python))),
                compile_bytecode(recipe, "horovod"),
                MakeReadable(path=str(recipe.prefix)),
            ),
        ),
    )


def compile_wheel(recipe: Recipe, horovod: Build) -> tuple[Operation, ...]:
    """Horovod from its source package, in a separate folder, into the cache of wheels."""
    build = recipe.layout.build(recipe.environment)
    tools, site = build / "tools", recipe.request.site
    requirements, source = build / "horovod.txt", recipe.layout.sources / source_name(horovod.source)
    gpu, in_prefix = horovod.gpu, "/" not in horovod.mpicxx
    pip = (recipe.prefix_python, "-m", "pip")
    environ = {
        **horovod.environ,
        "HOROVOD_CMAKE": str(build / "cmake"),
        "CMAKE_GENERATOR": "Ninja",
        "CMAKE_TOOLCHAIN_FILE": str(build / "toolchain.cmake"),
        # If MAKEFLAGS is set, Horovod's setup.py leaves the number of jobs to CMake, and CMake reads the second.
        "MAKEFLAGS": f"-j{recipe.facts.cores}",
        "CMAKE_BUILD_PARALLEL_LEVEL": str(recipe.facts.cores),
        "TMPDIR": str(build / "tmp"),
    }
    nccl: tuple[Operation, ...] = ()
    if gpu and gpu.nccl_shared:
        environ["HOROVOD_NCCL_LIB"] = str(build / "nccl")
        nccl = (WriteFile(path=str(build / "nccl" / "libnccl.so"), text=nccl_for_the_linker(gpu)),)
    elif gpu:
        environ["HOROVOD_NCCL_LIB"] = str(PurePosixPath(gpu.nccl_library).parent)
    return (
        Remove(path=str(build)),
        WriteFile(path=str(requirements), text=horovod.source.text),
        WriteFile(path=str(build / "build.txt"), text=horovod.tools.without("horovod")),
        WriteFile(
            path=str(build / "toolchain.cmake"),
            text=horovod.toolchain(str(recipe.prefix / "bin" / horovod.mpicxx) if in_prefix else horovod.mpicxx),
        ),
        *nccl,
        WriteFile(path=str(build / "cmake"), text=CMAKE_WRAPPER, executable=True),
        WriteFile(
            path=str(build / "tmp" / "README"), text="pip and the compilers write temporary files to this folder\n"
        ),
        FetchSource(
            path=str(source),
            hashes=horovod.source.hashes,
            folder=str(build / "source"),
            download=Command(
                argv=(
                    *(*pip, "download", "--no-deps", "--no-binary", "horovod", "--no-build-isolation", "--no-input"),
                    *("--require-hashes", "--dest", str(build / "source"), "-r", str(requirements)),
                ),
            ),
        ),
        Command(argv=recipe.installer.environment_argv(str(tools), pip=False)),
        Command(argv=recipe.installer.lock_argv(str(tools / "bin" / "python"), str(build / "build.txt"))),
        Unpack(
            path=str(source),
            folder=str(build / "horovod"),
            patches=tuple(
                PatchFile(name=patch.name, subject=patch.subject, text=patch.text) for patch in horovod.patches
            ),
        ),
        Command(
            argv=(
                *(*pip, "wheel", "--verbose", "--no-deps", "--no-build-isolation", "--no-cache-dir", "--no-index"),
                *("--wheel-dir", str(build / "wheel"), str(build / "horovod")),
            ),
            path=(str(tools / "bin"), str(recipe.prefix / "bin")),
            environ=tuple(sorted(environ.items())),
            # It imports the framework and compiles for the arch: on a node of it, if the job's script runs on another.
            launcher=site.launcher_to_node(recipe.request.arch),
        ),
        KeepWheel(folder=str(build / "wheel"), key=horovod.key, abi=horovod.abi),
        Remove(path=str(build)),
    )


def compile_bytecode(recipe: Recipe, package: str = "") -> Command:
    """The bytecode of one package, or of all, on all cores.

    Without it every rank compiles on every start, and cannot keep the result. It comes before Horovod is compiled, because
    CMake imports TensorFlow, which takes several times as long without bytecode.
    """
    folder = PurePosixPath(recipe.site_packages) / package
    other_python = recipe.request.stack.framework.interface.other_python
    leave_out = ("-x", other_python) if other_python else ()
    cores = str(recipe.facts.cores)
    return Command(argv=(recipe.prefix_python, "-m", "compileall", "-q", "-j", cores, *leave_out, str(folder)))
