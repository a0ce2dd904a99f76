"""The backend `spack`: what it would build, the identity of that, and the steps that make it at a prefix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from provision.backends.backend import Construction, Draft, Row, draft_of
from provision.backends.spack import program
from provision.backends.spack.environment_yaml import OWN, SpackEnvironment, target_of, write_yaml
from provision.backends.spack.externals import externals_here
from provision.backends.spack.repository import (
    PIP_SHA256,
    PIP_VERSION,
    PIP_WHEEL,
    REPOSITORY,
    digest,
    repository_files,
    sources_of,
)
from provision.backends.venv.wheelhouse import fetch_lock, file_argv, not_fetched, source_name
from provision.errors import PlanError
from provision.horovod.wheel import Build, make_builds
from provision.model import operation as op
from provision.model.facts import Existing, Facts, SpackFacts
from provision.model.layout import EnvironmentId, Layout
from provision.model.request import Request
from provision.proof.proof_shape import proof_shape
from provision.wording import about, count

# Guesses from a few runs on 2 cores: solving and installing wheels, and the CPU seconds of compiling Horovod, which runs on all
# cores; installing from a cache. Not measured on a quiet machine.
WHEELS_S = 60.0
HOROVOD_CPU_S = 170.0
CACHE_S = 45.0


@dataclass(frozen=True, kw_only=True)
class Steps:
    """The steps of one environment at its prefix. `files` are those of the prefix that are generated: spack.yaml, packages."""

    shown: SpackEnvironment
    facts: Facts
    spack: SpackFacts
    builds: tuple[Build, ...]
    files: Mapping[str, str]
    layout: Layout
    environment: EnvironmentId

    @property
    def prefix(self) -> str:
        """The folder of the environment."""
        return str(self.layout.prefix(self.environment))

    def construction(self, existing: Existing, plan_text: str) -> Construction:
        """Everything that is made at the prefix. What was proved goes to the build cache, for other roots."""
        request, builds, spack = self.shown.request, self.builds, self.spack
        push = self.run("buildcache", "push", "--unsigned", "--update-index", program.BUILD_CACHE)
        without = "the environment is complete, but another root cannot install its packages from the build cache"
        cache = Row(
            name="cache",
            title="its packages into the build cache",
            reason="another root installs them in seconds; a failure is only a warning",
            operations=(replace(push, without=without),),
        )
        missing = []
        if not spack.cache:
            missing = not_fetched(request.locks, request.sources, fetched=existing.fetched, sources=existing.sources)
            missing += [] if PIP_WHEEL in existing.sources else [PIP_WHEEL]
        return Construction(
            rows=tuple(self.rows(plan_text)),
            not_fetched=tuple(missing),
            mpi_libraries=(builds[0].mpi_libraries or (f"{self.prefix}/lib/libmpi.so",)) if builds else (),
            allowed=(str(self.layout.spack_store),),
            proved=(cache,),
            notes=(self.note,),
        )

    @property
    def note(self) -> str:
        """How much Spack builds, and about how long: as the last time, or else estimated."""
        packages, cores, cache = count(len(self.shown.sources.built), "package"), self.facts.cores, self.spack.cache
        took = f"{about(self.spack.took_s)} as the last time" if self.spack.took_s else ""
        if cache:
            return f"{packages} from {cache}, {took or about(CACHE_S)}; nothing is compiled"
        seconds = WHEELS_S + (HOROVOD_CPU_S / max(cores, 1) if self.builds else 0.0)
        took = took or f"{about(seconds)} with {count(cores, 'core')}"
        return f"builds {packages}, {took}; {'only Horovod' if self.builds else 'nothing'} is compiled"

    def rows(self, plan_text: str) -> Iterator[Row]:
        """The environment written, solved, installed, and joined to one folder."""
        spack, builds, sources = self.spack, self.builds, self.shown.sources
        yield Row(
            name="create",
            title=f"Spack environment for {self.shown.target}",
            reason=f"Spack {spack.version} {spack.commit[:7]}",
            operations=tuple(op.WriteFile(path=path, text=text) for path, text in self.written(plan_text).items()),
        )
        if builds and self.facts.mpi and sources.mpi_lock is None:
            request, arch = self.shown.request, self.shown.request.arch
            shape = proof_shape(request.site, arch, request.stack)
            tried = op.TryMpi(
                wrapper=self.facts.mpi.cxx,
                libraries=self.facts.mpi.libraries,
                launcher=arch.launcher,
                nodes=shape.nodes,
                ranks_per_node=shape.ranks_per_node,
                folder=str(self.layout.build(self.environment)),
            )
            yield Row(
                name="externals",
                title="the site's MPI, with a small program",
                reason="an external with a wrong prefix builds, and fails later",
                operations=(tried,),
            )
        yield Row(
            name="concretize",
            title="spack concretize (seconds: only the generated packages)",
            reason="spack.lock has every package with its hash",
            operations=(self.run("concretize", "-f"), self.check),
        )
        packages = " and ".join(name for name in sources.built if name != "py-pip")
        wheels = sum(len(lock.pins) for lock in sources.locks.values()) - len(builds)
        install = self.run("install", "--only-concrete", "--fail-fast", "--no-check-signature")
        if spack.cache:
            install = replace(install, argv=(*install.argv, "--cache-only"))
        yield Row(
            name="install",
            title=f"spack install: {packages}, " + (f"from {spack.cache}" if spack.cache else f"{wheels} wheels"),
            reason="only from the build cache"
            if spack.cache
            else "from the wheelhouse and the mirror, without network once they are filled",
            operations=(*(() if spack.cache else self.fetch()), self.check, install),
        )
        # `spack install` makes the view anew at its end, whatever it installed (`cmd/install.py`).
        links = (("ln", "-sfn", f"view/{name}", f"{self.prefix}/{name}") for name in ("bin", "lib", "pyvenv.cfg"))
        yield Row(
            name="view",
            title="one folder with all packages",
            reason="Python, its packages and programs as in a virtual environment",
            operations=(*(op.Command(argv=argv) for argv in links), op.MakeReadable(path=self.prefix)),
        )

    @property
    def configuration(self) -> str:
        """The folder of Spack's configuration."""
        return str(self.layout.records_folder(self.environment) / "spack")

    def run(self, *words: str) -> op.RunSpack:
        """One command of Spack."""
        return op.RunSpack(
            argv=program.argv(self.spack, self.configuration, self.prefix, *words),
            environ=program.environ(self.layout, self.spack),
        )

    def written(self, plan_text: str) -> dict[str, str]:
        """The files from which Spack solves, by their paths."""
        build, cores = str(self.layout.build(self.environment)), self.facts.cores
        return {
            **{f"{self.prefix}/{name}": text for name, text in self.files.items()},
            f"{self.configuration}/config.yaml": program.configuration(self.layout, build, cores),
            f"{self.configuration}/mirrors.yaml": program.mirrors(self.layout, self.spack.cache),
            f"{self.configuration}/modules.yaml": program.NO_MODULES,
            str(self.layout.records_folder(self.environment) / "plan.json"): plan_text,
        }

    @property
    def check(self) -> op.CheckSpackLock:
        """What spack.lock must have. With a build cache in a folder, every package must come from there, or from our own."""
        target, given = self.shown.target, self.spack.cache.removeprefix("file://")
        caches = (given, str(program.build_cache(self.layout))) if self.spack.cache.startswith("file://") else ()
        return op.CheckSpackLock(
            path=f"{self.prefix}/spack.lock",
            root_specs=self.shown.sources.root_specs,
            targets=tuple((name, target_of(name, target)) for name in self.shown.sources.built),
            externals=tuple((external.name, external.prefix, external.target) for external in self.shown.externals),
            caches=caches,
        )

    def fetch(self) -> Iterator[op.Operation]:
        """All wheels to the wheelhouse, and the sources to the mirror, unless they are there."""
        request, layout = self.shown.request, self.layout
        for lock in request.locks:
            yield fetch_lock(lock, request, self.shown.target)
        pins = [(PIP_WHEEL, "pip", f"pip=={PIP_VERSION} --hash=sha256:{PIP_SHA256}\n", PIP_SHA256, "")]
        for pin in request.sources:
            pins.append((source_name(pin), pin.name, pin.text, pin.hashes[0].removeprefix("sha256:"), ".tar.gz"))
        for file, name, text, sha256, extension in pins:
            folder = layout.build(self.environment) / f"source-{name}"
            requirements, files = str(folder / "requirements.txt"), str(folder / "files")
            kind = ("--only-binary", ":all:") if name == "pip" else ("--no-binary", name)
            source, mirrored = str(layout.sources / file), str(program.mirrored(layout, sha256, extension))
            yield op.WriteFile(path=requirements, text=text)
            yield op.FetchSource(
                path=source,
                hashes=(f"sha256:{sha256}",),
                folder=files,
                download=op.Command(argv=file_argv(self.facts.tool_python, requirements, files, *kind)),
            )
            yield op.Command(argv=("install", "-D", "-m", "644", source, mirrored))


def draft(request: Request, facts: Facts, target: str) -> Draft:
    """What would be built for the CPU `target` on a machine with these facts.

    Raises:
        PlanError: there is no Spack, compiler or MPI, the root's path is too long for Spack, or a lock does not pin what the
            stack names.
    """
    spack = facts.spack
    if spack is None:
        raise PlanError("the probes did not find Spack, and gave no reason")
    program.refuse_long_store(Layout(PurePosixPath(request.site.root)))
    builds = make_builds(request, facts, facts.gpu if request.arch.gpu else None, target)
    sources = sources_of(request)
    shown = SpackEnvironment(
        request=request, target=target, externals=externals_here(request, facts, target), sources=sources
    )
    yaml, packages = write_yaml(shown, OWN), repository_files([sources])
    files = {"spack.yaml": yaml, **{f"{REPOSITORY}/{name}": text for name, text in packages.items()}}

    def construct(layout: Layout, environment: EnvironmentId, existing: Existing, plan_text: str) -> Construction:
        steps = Steps(
            shown=shown,
            facts=facts,
            spack=spack,
            builds=builds,
            files=files,
            layout=layout,
            environment=environment,
        )
        return steps.construction(existing, plan_text)

    own = {
        "spack": f"{spack.version} {spack.commit}",
        "spack packages": f"generated, sha256 {digest(packages)}",
        "spack.yaml": f"sha256 {digest({'spack.yaml': yaml})}",
    }
    return draft_of(request, target, builds, construct, own=own)
