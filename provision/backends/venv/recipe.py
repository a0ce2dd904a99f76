"""A recipe: the operations of the steps that make one virtual environment: virtualenv, a locked install, what is compiled.

Steps have a strict order: Horovod is compiled against the framework that is really in the environment.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from provision.backends.backend import Row
from provision.backends.venv.installer import Installer
from provision.backends.venv.wheelhouse import source_name
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
    Together,
    Unpack,
    WriteFile,
)
from provision.model.request import Request


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Everything the steps of one environment are made from. `wheelhouse`: the only source of packages, if it has all."""

    request: Request
    facts: Facts
    builds: tuple[Build, ...]
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
    builds, prefix, installer = recipe.builds, str(recipe.prefix), recipe.installer
    records = recipe.layout.records_folder(recipe.environment)
    packages = sum(len(lock.pins) for lock in recipe.locks) - len(builds)
    installs: list[Operation] = []
    for lock in recipe.locks:
        name = str(records / PurePosixPath(lock.path).name)
        installs.append(WriteFile(path=name, text=lock.without(*(build.name for build in builds))))
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
            reason=f"the framework before {builds[0].title}, which is compiled against it"
            if builds
            else "the framework, without Horovod",
            operations=(*installs, PlaceData(site_packages=recipe.site_packages)),
            packages=packages,
            starts_over=True,
        ),
        Row(
            name="bytecode",
            title="bytecode of all packages",
            reason="otherwise every rank compiles at every start",
            operations=(compile_bytecode(recipe), *(() if builds else (MakeReadable(path=prefix),))),
        ),
        *_compiled_rows(recipe, wheels),
    )


def _compiled_rows(recipe: Recipe, wheels: Collection[str]) -> tuple[Row, ...]:
    """Wheels compiled, unless they are cached (the cache outlives every prefix), and installed, which can be repeated."""
    if not recipe.builds:
        return ()
    missing = tuple(build for build in recipe.builds if build.key not in wheels)
    keys = [f"wheels/{build.key}" for build in recipe.builds]
    titles = [f"{build.title} {build.version}" for build in missing or recipe.builds]
    cached = f"{' and '.join(keys)} {'were' if keys[1:] else 'was'} compiled from the same source with the same flags"
    return (
        Row(
            name="compile",
            title=f"{' and '.join(titles)} from source",
            reason=f"no wheel {' and '.join(build.key for build in missing)} yet",
            operations=compile_wheels(recipe, missing) if missing else (),
            receipt=recipe.builds[-1].name,
            kept="installed",
            reuse=None if missing else cached,
        ),
        *(
            Row(
                name=build.name,
                title=f"{build.title} into the environment",
                reason=f"wheels/{build.key}",
                operations=(
                    InstallWheel(
                        key=build.key, command=Command(argv=recipe.installer.wheel_argv(recipe.prefix_python))
                    ),
                    compile_bytecode(recipe, build.name),
                    MakeReadable(path=str(recipe.prefix)),
                ),
            )
            for build in recipe.builds
        ),
    )


def compile_wheels(recipe: Recipe, builds: Sequence[Build]) -> tuple[Operation, ...]:
    """Packages from their sources, in a separate folder, into the cache of wheels.

    They are compiled at the same time: one core is idle while CMake looks at the machine, while Cython works, and at the end.
    """
    folder, pip = recipe.layout.build(recipe.environment), (recipe.prefix_python, "-m", "pip")
    tools, launcher = folder / "tools", recipe.request.site.launcher_to_node(recipe.request.arch)
    operations: list[Operation] = [
        Remove(path=str(folder)),
        WriteFile(path=str(folder / "build.txt"), text=builds[0].tools.without(*(build.name for build in builds))),
        WriteFile(
            path=str(folder / "tmp" / "README"), text="pip and the compilers write temporary files to this folder\n"
        ),
        Command(argv=recipe.installer.environment_argv(str(tools), pip=False)),
        Command(argv=recipe.installer.lock_argv(str(tools / "bin" / "python"), str(folder / "build.txt"))),
    ]
    commands = []
    for build in builds:
        name, wrapper, in_prefix = build.name, build.wrapper, "/" not in build.wrapper
        requirements, source = folder / f"{name}.txt", recipe.layout.sources / source_name(build.source)
        kit = build.kit(folder, str(recipe.prefix / "bin" / wrapper) if in_prefix else wrapper)
        operations += (
            WriteFile(path=str(requirements), text=build.source.text),
            *(WriteFile(path=str(folder / file), text=text) for file, text in kit.files.items()),
            *(WriteFile(path=str(folder / file), text=text, executable=True) for file, text in kit.programs.items()),
            FetchSource(
                path=str(source),
                hashes=build.source.hashes,
                folder=str(folder / "source"),
                download=Command(
                    argv=(
                        *(*pip, "download", "--no-deps", "--no-binary", name, "--no-build-isolation", "--no-input"),
                        *("--require-hashes", "--dest", str(folder / "source"), "-r", str(requirements)),
                    ),
                ),
            ),
            Unpack(
                path=str(source),
                folder=str(folder / name),
                patches=tuple(
                    PatchFile(name=patch.name, subject=patch.subject, text=patch.text) for patch in build.patches
                ),
            ),
        )
        environ = {
            **kit.environ,
            # If MAKEFLAGS is set, Horovod's setup.py leaves the number of jobs to CMake, and CMake reads the second.
            "MAKEFLAGS": f"-j{recipe.facts.cores}",
            "CMAKE_BUILD_PARALLEL_LEVEL": str(recipe.facts.cores),
            "TMPDIR": str(folder / "tmp"),
        }
        commands.append(
            Command(
                argv=(
                    *(*pip, "wheel", "--verbose", "--no-deps", "--no-build-isolation", "--no-cache-dir", "--no-index"),
                    *("--wheel-dir", str(folder / "wheel" / name), str(folder / name)),
                ),
                path=(str(tools / "bin"), str(recipe.prefix / "bin")),
                environ=tuple(sorted(environ.items())),
                # It may import the framework, and compiles for the arch: on a node of it, if the job's script runs on another.
                launcher=launcher,
            )
        )
    # A launcher may refuse a second program on a node where one runs, as aprun does.
    alone = launcher is not None or len(commands) == 1
    names = ("compile", *(f"compile-{build.name}" for build in builds[1:]))
    together = commands if alone else [Together(commands=tuple(zip(names, commands, strict=True)))]
    kept = (KeepWheel(folder=str(folder / "wheel" / build.name), key=build.key, abi=build.abi) for build in builds)
    return (*operations, *together, *kept, Remove(path=str(folder)))


def compile_bytecode(recipe: Recipe, package: str = "") -> Command:
    """The bytecode of one package, or of all, on all cores.

    Without it every rank compiles on every start, and cannot keep the result. It comes before Horovod is compiled, because
    CMake imports TensorFlow, which takes several times as long without bytecode.

    It contains neither the prefix, which Python replaces at the import by the path of the source, nor (from Python 3.7 on) the
    time of the source: so that of equal sources is equal in all environments, which can share it.
    """
    folder = PurePosixPath(recipe.site_packages) / package
    hashed = () if recipe.python.minor in ("3.5", "3.6") else ("--invalidation-mode", "unchecked-hash")
    equal = ("-d", str(folder.relative_to(recipe.prefix)), *hashed)
    other_python = [one.other_python for one in recipe.request.stack.frameworks if one.other_python]
    leave_out = ("-x", "|".join(other_python)) if other_python else ()
    cores = str(recipe.facts.cores)
    return Command(argv=(recipe.prefix_python, "-m", "compileall", "-q", "-j", cores, *equal, *leave_out, str(folder)))
