"""A site: one cluster as `sites/<site>.toml` describes it, with its archs, module system, scheduler and launchers."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from provision.errors import ConfigError
from provision.model.reader import Faults, Reader, nearest

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
MODULE = re.compile(r"[A-Za-z0-9_./+][A-Za-z0-9_./+@=:-]*")
OPTION = re.compile(r"-[^\x00-\x1f]+")
TIME = re.compile(r"(\d+-)?\d+(:\d{2}){0,2}")

ModuleSystemName = Literal["none", "lmod", "environment-modules"]
SchedulerName = Literal["none", "slurm"]
LauncherName = Literal["mpiexec", "srun"]
MpiFamily = Literal["mpich", "openmpi"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleSystem:
    """How `module` comes to be: the file that bash sources for it, and the folders of modulefiles to use."""

    name: ModuleSystemName
    init: str | None
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduler:
    """The batch system, and options that every job of this site needs (an account, say)."""

    name: SchedulerName
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Launcher:
    """The program that starts ranks, with the site's options for it (`--mpi=pmi2`)."""

    name: LauncherName
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiler:
    """The name of the C++ compiler once the arch's modules are loaded."""

    cxx: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Mpi:
    """Where MPI comes from.

    `site`: the compiler wrapper `cxx` found on PATH once the modules are loaded. `pypi`: a wheel, installed into the
    environment from the lock named `requirements`.
    """

    provider: Literal["site", "pypi"]
    family: MpiFamily
    cxx: str
    requirements: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a batch job on this arch asks the scheduler for. `time` as the scheduler spells it.

    `exclusive`: whole nodes. `cpus_per_task` (0: unsaid) goes to the launcher too, which does not inherit it.
    """

    time: str
    partition: str | None
    constraint: str | None
    account: str | None
    qos: str | None
    exclusive: bool
    cpus_per_task: int
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Smoke:
    """The shape of the proof: how many nodes and ranks per node, and how long (seconds) until a stall is called one."""

    nodes: int
    ranks_per_node: int
    timeout_s: int

    @property
    def ranks(self) -> int:
        """Ranks in all."""
        return self.nodes * self.ranks_per_node


@dataclass(frozen=True, slots=True, kw_only=True)
class Arch:
    """A kind of node. `target` is archspec's name for its CPU, or `native`: whatever this machine has."""

    name: str
    target: str
    modules: tuple[str, ...]
    python: str | None
    compiler: Compiler
    mpi: Mpi
    launcher: Launcher
    job: Job
    smoke: Smoke
    environ: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One cluster. `root` is where everything is built; `origin` is the file that says all this, `typed` what
    names it on a command line."""

    name: str
    title: str
    origin: str
    typed: str
    root: str
    stack: str
    modules: ModuleSystem
    scheduler: Scheduler
    archs: tuple[Arch, ...]

    def arch(self, name: str | None) -> Arch:
        """The arch called `name`, or the only one there is.

        Raises:
            ConfigError: no such arch, or several and none named; the known ones are listed.
        """
        known = [arch.name for arch in self.archs]
        listing = ", ".join(f"`{one}`" for one in known)
        if name is None:
            if len(self.archs) == 1:
                return self.archs[0]
            raise ConfigError(f"site `{self.name}` has several archs: {listing}", hint=f"add `--arch {known[0]}`")
        for arch in self.archs:
            if arch.name == name:
                return arch
        raise ConfigError(
            f"site `{self.name}` has no arch `{name}`{nearest(name, known)}",
            evidence=[f"known archs: {listing}", f"described in: {self.origin}"],
            hint=f"`--arch {next(iter(difflib.get_close_matches(name, known)), known[0])}`, or describe it in `{self.origin}`",
        )


def _arch(name: str, archs: Reader, launchers: tuple[str, ...]) -> Arch:
    table = archs.table(name)
    compiler, mpi, launcher = table.table("compiler"), table.table("mpi"), table.table("launcher")
    job, smoke = table.table("job"), table.table("smoke")
    provider = mpi.text("provider", choices=("site", "pypi"))
    arch = Arch(
        name=name,
        target=table.text("target", pattern=NAME),
        modules=table.texts("modules", pattern=MODULE),
        python=table.optional("python", expand=True),
        compiler=Compiler(cxx=compiler.text("cxx", "g++")),
        mpi=Mpi(
            provider=provider,  # type: ignore[arg-type]
            family=mpi.text("family", "mpich", choices=("mpich", "openmpi")),  # type: ignore[arg-type]
            cxx=mpi.text("cxx", "mpicxx"),
            requirements=mpi.optional("requirements", pattern=NAME),
        ),
        launcher=Launcher(
            name=launcher.text("name", launchers[0], choices=launchers),  # type: ignore[arg-type]
            options=launcher.texts("options", pattern=OPTION),
        ),
        job=Job(
            time=job.text("time", "01:00:00", pattern=TIME),
            partition=job.optional("partition", pattern=NAME),
            constraint=job.optional("constraint", pattern=re.compile(r"[A-Za-z0-9_&|*()\[\],.:-]+")),
            account=job.optional("account", pattern=NAME),
            qos=job.optional("qos", pattern=NAME),
            exclusive=job.flag("exclusive", True),
            cpus_per_task=job.integer("cpus_per_task", 0),
            options=job.texts("options", pattern=OPTION),
        ),
        smoke=Smoke(
            nodes=smoke.integer("nodes", 1, least=1),
            ranks_per_node=smoke.integer("ranks_per_node", 2, least=1),
            timeout_s=smoke.integer("timeout_s", 900, least=1),
        ),
        environ=table.environment("environ"),
    )
    if provider == "site" and arch.mpi.requirements is not None:
        mpi.fault("requirements", "names a lock, which is for provider `pypi`; the site's MPI comes from its modules")
    if provider == "pypi" and arch.mpi.requirements is None:
        mpi.fault("requirements", "missing; with provider `pypi` it names the lock in `requirements/` that holds MPI")
    if not NAME.fullmatch(name):
        archs.fault(name, "cannot be the name of an arch: use letters, digits and `_.+-`")
    for part in (compiler, mpi, launcher, job, smoke, table):
        part.done()
    return arch


def _archs(table: Reader, launchers: tuple[str, ...]) -> tuple[Arch, ...]:
    return tuple(_arch(name, table, launchers) for name in table.names())


def read_site(data: Mapping[str, Any], origin: str, environ: Mapping[str, str], typed: str | None = None) -> Site:
    """The site that a parsed `sites/<site>.toml` describes; `environ` fills its `${VARIABLES}`.

    Raises:
        ConfigError: with every fault of the file, each under its key path.
    """
    faults = Faults(origin)
    top = Reader(data, faults, environ=environ)
    modules, scheduler = top.table("modules"), top.table("scheduler")
    system = modules.text("system", "none", choices=("none", "lmod", "environment-modules"))
    batch = scheduler.text("system", "none", choices=("none", "slurm"))
    launchers = ("srun", "mpiexec") if batch == "slurm" else ("mpiexec",)
    site = Site(
        name=top.text("name", pattern=NAME),
        title=top.text("title", ""),
        origin=origin,
        typed=typed or str(data.get("name", origin)),
        root=top.text("root", expand=True),
        stack=top.text("stack", pattern=NAME),
        modules=ModuleSystem(
            name=system,  # type: ignore[arg-type]
            init=modules.optional("init", expand=True),
            path=modules.texts("path", expand=True),
        ),
        scheduler=Scheduler(name=batch, options=scheduler.texts("options", pattern=OPTION)),  # type: ignore[arg-type]
        archs=_archs(top.table("archs", required=True), launchers),
    )
    if data.get("archs") == {}:
        top.fault("archs", "describes no arch")
    if system != "none" and site.modules.init is None:
        modules.fault("init", f"missing; the file that bash sources so that `module` of {system} is there")
    if batch != "none":
        for arch in site.archs:
            if arch.target == "native":
                faults.add(
                    f"archs.{arch.name}.target", '"native" is for machines without a scheduler: name the nodes\' CPU'
                )
    if system == "none":
        for arch in site.archs:
            if arch.modules:
                faults.add(f"archs.{arch.name}.modules", 'names modules, but `modules.system` is "none"')
    for part in (modules, scheduler, top):
        part.done()
    faults.check(hint=f"edit `{origin}`")
    return site
