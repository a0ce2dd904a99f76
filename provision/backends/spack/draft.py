"""The backend `spack`: what it would build, the identity of that, and the steps that make it at a prefix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import PurePosixPath

from provision.backends.backend import Construction, Row
from provision.backends.spack import program
from provision.backends.spack.environment_yaml import SpackEnvironment, write_yaml
from provision.backends.spack.externals import External, externals_here
from provision.backends.spack.pip_wheel import PIP_SHA256, PIP_VERSION, PIP_WHEEL
from provision.backends.spack.repository import REPOSITORY, Sources, digest, repository_files, sources_of
from provision.backends.spack.routes import describe_routes
from provision.backends.spack.shown_files import OWN
from provision.backends.venv.wheelhouse import file_argv, not_fetched, source_name
from provision.errors import PlanError
from provision.horovod.wheel import Build, make_build
from provision.knowledge.targets import family_of
from provision.model.facts import Existing, Facts, SpackFacts
from provision.model.layout import EnvironmentId, Layout
from provision.model.lock import Lock
from provision.model.operation import (
    CheckSpackLock,
    Command,
    FetchLock,
    FetchSource,
    MakeReadable,
    Operation,
    RunSpack,
    TryMpi,
    WriteFile,
)
from provision.model.problem import raise_problems
from provision.model.request import Request
from provision.proof.proof_shape import proof_shape


@dataclass(frozen=True)
class SpackDraft:
    """A Spack environment with the packages of the request's locks, and with Horovod if the stack has it."""

    request: Request
    facts: Facts
    spack: SpackFacts
    target: str
    build: Build | None
    sources: Sources
    externals: tuple[External, ...]

    @property
    def compiler(self) -> str:
        """The compiler of Horovod; without Horovod nothing is compiled."""
        return self.build.compiler if self.build else ""

    @property
    def mpi(self) -> str:
        """The MPI that Horovod links, or the wheel of one."""
        return self.build.mpi if self.build else self.request.mpi_wheel

    @property
    def horovod(self) -> str:
        """The version that Horovod reports."""
        return self.build.version if self.build else ""

    @property
    def abi_key(self) -> str | None:
        """None: Spack's store keeps what was compiled."""
        return None

    @cached_property
    def files(self) -> dict[str, str]:
        """The files of the generated repository."""
        return repository_files([self.sources])

    @cached_property
    def yaml(self) -> str:
        """The text of spack.yaml."""
        environment = SpackEnvironment(
            request=self.request, target=self.target, externals=self.externals, sources=self.sources
        )
        return write_yaml(environment, OWN)

    @property
    def identity(self) -> Mapping[str, str]:
        """The lock, the text of spack.yaml, the generated packages and the commit of Spack."""
        build = self.build
        horovod = {}
        if build:
            horovod = {
                "compiler": build.compiler,
                "target": f"{self.target} ({build.target_flags})",
                "horovod": f"{build.source.version} {' '.join(build.source.hashes)}",
                "patches": " ".join(f"{patch.name}:{patch.sha256[:12]}" for patch in build.patches),
            }
        return {
            **horovod,
            **({"mpi": self.mpi} if self.mpi else {}),
            "lock": self.request.lock.sha256,
            "mpi lock": self.request.mpi_lock.sha256 if self.request.mpi_lock else "",
            "spack": f"{self.spack.version} {self.spack.commit}",
            "spack packages": f"generated, sha256 {digest(self.files)}",
            "spack.yaml": f"sha256 {digest({'spack.yaml': self.yaml})}",
        }

    def construct(self, layout: Layout, environment: EnvironmentId, existing: Existing, plan_text: str) -> Construction:
        """The steps that make it at its prefix: written, solved, installed, and joined to one folder."""
        prefix = layout.prefix(environment)
        missing: list[str] = []
        if not self.spack.cache:
            missing = not_fetched(
                self.request.locks, self.sources.horovod, fetched=existing.fetched, sources=existing.sources
            )
            missing += [] if PIP_WHEEL in existing.sources else [PIP_WHEEL]
        return Construction(
            python=f"{prefix}/bin/python",
            rows=self._rows(layout, environment, plan_text),
            not_fetched=tuple(missing),
            prepend=(("PATH", f"{prefix}/bin"),),
            environ=(("VIRTUAL_ENV", str(prefix)),),
            mpi_libraries=(self.build.mpi_libraries or (f"{prefix}/lib/libmpi.so",)) if self.build else (),
            allowed=(str(layout.spack_store),),
            proved=(self._cache_row(layout, environment),),
            notes=describe_routes(
                len(self.sources.built),
                cores=self.facts.cores,
                compiles=self.build is not None,
                cache=self.spack.cache,
                took_s=self.spack.took_s,
            ),
        )

    def _cache_row(self, layout: Layout, environment: EnvironmentId) -> Row:
        """What was proved goes to the build cache, from which another root installs it."""
        push = ("buildcache", "push", "--unsigned", "--update-index", program.BUILD_CACHE)
        without = "the environment is complete, but another root cannot install its packages from the build cache"
        return Row(
            name="cache",
            title="its packages into the build cache",
            reason="another root installs them in seconds; a failure is only a warning",
            operations=(replace(self._spack(layout, environment, *push), without=without),),
        )

    def _rows(self, layout: Layout, environment: EnvironmentId, plan_text: str) -> tuple[Row, ...]:
        count = "py-tensorflow and py-horovod" if self.build else "py-tensorflow"
        wheels = sum(len(lock.pins) for lock in self._locks) - (1 if self.build else 0)
        return (
            Row(
                name="create",
                title=f"Spack environment for {self.target}",
                reason=f"Spack {self.spack.version} {self.spack.commit[:7]}",
                operations=self._create(layout, environment, plan_text),
            ),
            *(
                (
                    Row(
                        name="externals",
                        title="the site's MPI, with a small program",
                        reason="an external with a wrong prefix builds, and fails later",
                        operations=(self._try_mpi(layout, environment),),
                    ),
                )
                if self._has_site_mpi
                else ()
            ),
            Row(
                name="concretize",
                title="spack concretize (seconds: only the generated packages)",
                reason="spack.lock has every package with its hash",
                operations=self._concretize(layout, environment),
            ),
            Row(
                name="install",
                title=f"spack install: {count}, "
                + (f"from {self.spack.cache}" if self.spack.cache else f"{wheels} wheels"),
                reason="only from the build cache"
                if self.spack.cache
                else "from the wheelhouse and the mirror, without network once they are filled",
                operations=self._install(layout, environment),
            ),
            Row(
                name="view",
                title="one folder with all packages",
                reason="Python, its packages and programs as in a virtual environment",
                operations=self._view(layout, environment),
            ),
        )

    @property
    def _locks(self) -> tuple[Lock, ...]:
        """The locks of the environment, without the one of the build."""
        return tuple(lock for lock in (self.sources.lock, self.sources.mpi_lock) if lock)

    @property
    def _has_site_mpi(self) -> bool:
        return self.build is not None and self.facts.mpi is not None and self.request.mpi_lock is None

    def _configuration(self, layout: Layout, environment: EnvironmentId) -> str:
        return str(layout.records_folder(environment) / "spack")

    def _spack(self, layout: Layout, environment: EnvironmentId, *words: str) -> RunSpack:
        prefix = str(layout.prefix(environment))
        return RunSpack(
            argv=program.argv(self.spack, self._configuration(layout, environment), prefix, *words),
            environ=program.environ(layout, self.spack),
        )

    def _create(self, layout: Layout, environment: EnvironmentId, plan_text: str) -> tuple[Operation, ...]:
        prefix, configuration = layout.prefix(environment), self._configuration(layout, environment)
        build = str(layout.build(environment))
        return (
            WriteFile(path=f"{prefix}/spack.yaml", text=self.yaml),
            *(WriteFile(path=f"{prefix}/{REPOSITORY}/{name}", text=text) for name, text in self.files.items()),
            WriteFile(path=f"{configuration}/config.yaml", text=program.configuration(layout, build, self.facts.cores)),
            WriteFile(path=f"{configuration}/mirrors.yaml", text=program.mirrors(layout, self.spack.cache)),
            WriteFile(path=f"{configuration}/modules.yaml", text=program.NO_MODULES),
            WriteFile(path=str(layout.records_folder(environment) / "plan.json"), text=plan_text),
        )

    def _try_mpi(self, layout: Layout, environment: EnvironmentId) -> TryMpi:
        assert self.facts.mpi is not None  # `_has_site_mpi`
        arch = self.request.arch
        shape = proof_shape(self.request.site, arch, self.request.stack)
        return TryMpi(
            wrapper=self.facts.mpi.cxx,
            libraries=self.facts.mpi.libraries,
            launcher=arch.launcher,
            nodes=shape.nodes,
            ranks_per_node=shape.ranks_per_node,
            folder=str(layout.build(environment)),
        )

    def _check(self, layout: Layout, environment: EnvironmentId) -> CheckSpackLock:
        return CheckSpackLock(
            path=f"{layout.prefix(environment)}/spack.lock",
            root_spec=self.sources.root_spec,
            targets=tuple(
                (name, family_of(self.target, self.target) if name in ("py-pip", "py-tensorflow") else self.target)
                for name in self.sources.built
            ),
            externals=tuple((external.name, external.prefix, external.target) for external in self.externals),
            caches=self._caches(layout),
        )

    def _caches(self, layout: Layout) -> tuple[str, ...]:
        """The folders of build caches from which every package must come; empty if packages are built."""
        given = self.spack.cache.removeprefix("file://")
        return (given, str(program.build_cache(layout))) if self.spack.cache.startswith("file://") else ()

    def _concretize(self, layout: Layout, environment: EnvironmentId) -> tuple[Operation, ...]:
        return (self._spack(layout, environment, "concretize", "-f"), self._check(layout, environment))

    def _install(self, layout: Layout, environment: EnvironmentId) -> tuple[Operation, ...]:
        words = ("install", "--only-concrete", "--fail-fast", "--no-check-signature")
        if self.spack.cache:
            return (self._check(layout, environment), self._spack(layout, environment, *words, "--cache-only"))
        return (
            *self._fetch(layout, environment),
            self._check(layout, environment),
            self._spack(layout, environment, *words),
        )

    def _fetch(self, layout: Layout, environment: EnvironmentId) -> tuple[Operation, ...]:
        """All wheels to the wheelhouse, and the two sources to the mirror, unless they are there."""
        request, build = self.request, layout.build(environment)
        fetched = tuple(
            FetchLock(
                path=lock.path,
                sha256=lock.sha256,
                requirements=lock.without("horovod"),
                minor=request.minor,
                target=self.target,
            )
            for lock in request.locks
        )
        operations: list[Operation] = [*fetched]
        pins = [(PIP_WHEEL, "pip", f"pip=={PIP_VERSION} --hash=sha256:{PIP_SHA256}\n", PIP_SHA256, "")]
        horovod = self.sources.horovod
        if horovod:
            digest_of = horovod.hashes[0].removeprefix("sha256:")
            pins.append((source_name(horovod), "horovod", horovod.text, digest_of, ".tar.gz"))
        for file, name, text, sha256, extension in pins:
            folder = build / f"source-{name}"
            requirements = str(folder / "requirements.txt")
            files = str(folder / "files")
            kind = ("--only-binary", ":all:") if name == "pip" else ("--no-binary", name)
            operations += [
                WriteFile(path=requirements, text=text),
                FetchSource(
                    path=str(layout.sources / file),
                    hashes=(f"sha256:{sha256}",),
                    folder=files,
                    download=Command(argv=file_argv(self.facts.tool_python, requirements, files, *kind)),
                ),
                Command(
                    argv=(
                        *("install", "-D", "-m", "644", str(layout.sources / file)),
                        str(program.mirrored(layout, sha256, extension)),
                    )
                ),
            ]
        return tuple(operations)

    def _view(self, layout: Layout, environment: EnvironmentId) -> tuple[Operation, ...]:
        """Links to the view, which `spack install` makes anew at its end, whatever it installed (`cmd/install.py`)."""
        prefix = layout.prefix(environment)
        return (
            *(
                Command(argv=("ln", "-sfn", f"view/{name}", f"{prefix}/{name}"))
                for name in ("bin", "lib", "pyvenv.cfg")
            ),
            MakeReadable(path=str(prefix)),
        )


def draft(request: Request, facts: Facts, target: str) -> SpackDraft:
    """What would be built for the CPU `target` on a machine with these facts.

    Raises:
        PlanError: there is no Spack, Python, compiler or MPI, the root's path is too long for Spack, or a lock does not pin
            what the stack names.
    """
    if facts.python is None:
        raise PlanError("the probes did not find Python, and gave no reason")
    if facts.spack is None:
        raise PlanError("the probes did not find Spack, and gave no reason")
    long = program.long_store_problem(Layout(PurePosixPath(request.site.root)))
    raise_problems([long] if long else [])
    build = make_build(request, facts, facts.gpu if request.arch.gpu else None, target)
    externals = externals_here(request, facts, target, build)
    return SpackDraft(
        request=request,
        facts=facts,
        spack=facts.spack,
        target=target,
        build=build,
        sources=sources_of(request),
        externals=externals,
    )
