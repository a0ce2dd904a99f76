"""The backend `venv`: what it would build, the identity of that, and the steps that make it at a prefix.

The steps are virtualenv, a locked install, and what is compiled, in a strict order: Horovod is compiled against the framework
that is really in the environment.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from provision.backends.backend import Construction, Draft, Row, draft_of
from provision.backends.venv.installer import Installer
from provision.backends.venv.wheelhouse import not_fetched, source_name
from provision.errors import Fault, raise_faults
from provision.horovod.wheel import Build, make_builds, site_environ
from provision.knowledge.versions import release
from provision.model import operation as op
from provision.model.facts import Existing, Facts, Interpreter
from provision.model.layout import EnvironmentId, Layout
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
    packages = len(recipe.request.pins) - len(builds)
    installs: list[op.Operation] = []
    # The framework's first; what each installs does not overlap.
    for lock in filter(None, (recipe.request.lock, recipe.request.mpi_lock)):
        name = str(records / PurePosixPath(lock.path).name)
        installs.append(op.WriteFile(path=name, text=lock.without(*(build.name for build in builds))))
        installs.append(op.Command(argv=installer.lock_argv(recipe.prefix_python, name)))
    return (
        Row(
            name="create",
            title=f"virtual environment with Python {recipe.python.minor}",
            reason=installer.python,
            # At its final place: virtual environments cannot be moved.
            operations=(
                op.Remove(path=prefix),
                op.Command(argv=installer.environment_argv(prefix, pip=True)),
                op.WriteFile(path=str(records / "plan.json"), text=plan_text),
            ),
        ),
        Row(
            name="install",
            title=f"{packages} locked packages by {installer.name}",
            reason=f"the framework before {builds[0].title}, which is compiled against it"
            if builds
            else "the framework, without Horovod",
            operations=(*installs, op.PlaceData(site_packages=recipe.site_packages)),
            packages=packages,
            starts_over=True,
        ),
        Row(
            name="bytecode",
            title="bytecode of all packages",
            reason="otherwise every rank compiles at every start",
            operations=(compile_bytecode(recipe), *(() if builds else (op.MakeReadable(path=prefix),))),
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
                    op.InstallWheel(
                        key=build.key, command=op.Command(argv=recipe.installer.wheel_argv(recipe.prefix_python))
                    ),
                    compile_bytecode(recipe, build.name),
                    op.MakeReadable(path=str(recipe.prefix)),
                ),
            )
            for build in recipe.builds
        ),
    )


def compile_wheels(recipe: Recipe, builds: Sequence[Build]) -> tuple[op.Operation, ...]:
    """Packages from their sources, in a separate folder, into the cache of wheels.

    They are compiled at the same time: one core is idle while CMake looks at the machine, while Cython works, and at the end.
    """
    folder, pip = recipe.layout.build(recipe.environment), (recipe.prefix_python, "-m", "pip")
    tools, launcher = folder / "tools", recipe.request.site.launcher_to_node(recipe.request.arch)
    operations: list[op.Operation] = [
        op.Remove(path=str(folder)),
        op.WriteFile(path=str(folder / "build.txt"), text=builds[0].tools.without(*(build.name for build in builds))),
        op.WriteFile(
            path=str(folder / "tmp" / "README"), text="pip and the compilers write temporary files to this folder\n"
        ),
        op.Command(argv=recipe.installer.environment_argv(str(tools), pip=False)),
        op.Command(argv=recipe.installer.lock_argv(str(tools / "bin" / "python"), str(folder / "build.txt"))),
    ]
    commands = []
    for build in builds:
        name, wrapper, in_prefix = build.name, build.wrapper, "/" not in build.wrapper
        requirements, source = folder / f"{name}.txt", recipe.layout.sources / source_name(build.source)
        kit = build.kit(folder, str(recipe.prefix / "bin" / wrapper) if in_prefix else wrapper)
        operations += (
            op.WriteFile(path=str(requirements), text=build.source.text),
            *(op.WriteFile(path=str(folder / file), text=text) for file, text in kit.files.items()),
            *(op.WriteFile(path=str(folder / file), text=text, executable=True) for file, text in kit.programs.items()),
            op.FetchSource(
                path=str(source),
                hashes=build.source.hashes,
                folder=str(folder / "source"),
                download=op.Command(
                    argv=(
                        *(*pip, "download", "--no-deps", "--no-binary", name, "--no-build-isolation", "--no-input"),
                        *("--require-hashes", "--dest", str(folder / "source"), "-r", str(requirements)),
                    ),
                ),
            ),
            op.Unpack(
                path=str(source),
                folder=str(folder / name),
                patches=tuple(
                    op.PatchFile(name=patch.name, subject=patch.subject, text=patch.text) for patch in build.patches
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
            op.Command(
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
    together = commands if alone else [op.Together(commands=tuple(zip(names, commands, strict=True)))]
    kept = (op.KeepWheel(folder=str(folder / "wheel" / build.name), key=build.key, abi=build.abi) for build in builds)
    return (*operations, *together, *kept, op.Remove(path=str(folder)))


def compile_bytecode(recipe: Recipe, package: str = "") -> op.Command:
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
    return op.Command(
        argv=(recipe.prefix_python, "-m", "compileall", "-q", "-j", cores, *equal, *leave_out, str(folder))
    )


def draft(request: Request, facts: Facts, target: str) -> Draft:
    """What would be built for the CPU `target` on a machine with these facts.

    Raises:
        PlanError: there is no compiler or MPI, the pip of the Python is too old, or a lock does not pin what the stack names.
    """
    _refuse_old_pip(facts)
    for framework in request.stack.frameworks:
        request.framework_pin(framework)
    builds = make_builds(request, facts, facts.gpu if request.arch.gpu else None, target)
    assigned = " ".join(f"{name}={shlex.quote(value)}" for name, value in site_environ(request).items())

    def construct(layout: Layout, environment: EnvironmentId, existing: Existing, plan_text: str) -> Construction:
        missing = not_fetched(
            request.locks, [build.source for build in builds], fetched=existing.fetched, sources=existing.sources
        )
        recipe = Recipe(
            request=request,
            facts=facts,
            builds=builds,
            layout=layout,
            environment=environment,
            wheelhouse=None if missing else str(layout.wheelhouse),
        )
        return Construction(
            rows=rows(recipe, existing.wheels, plan_text),
            not_fetched=tuple(missing),
            mpi_libraries=(builds[0].mpi_libraries or (f"{recipe.prefix}/lib/libmpi.so",)) if builds else (),
        )

    return draft_of(
        request,
        target,
        builds,
        construct,
        own={"build environment": assigned} if builds and assigned else {},
        wheels={build.name: build.key for build in builds},
    )


def _refuse_old_pip(facts: Facts) -> None:
    """Raise if only the pip of an old Python could install the lock, and it cannot.

    Python 3.6 brings pip 9 or 18, which does not know manylinux2010 and newer wheels (pip 19.0 was the first that does).
    """
    python = facts.python
    if python and facts.uv is None and python.own_venv and release(python.version) < (3, 7):
        raise_faults(
            [
                Fault(
                    "missing",
                    "uv",
                    f"there is no `uv`, and the pip of Python {python.version} cannot install today's packages",
                    evidence=(f"Python: {python.executable}",),
                    hint="`pip install uv` into the environment of provision, then run the same command again",
                )
            ]
        )
