"""An arch: a kind of node at a site, as `[archs.<arch>]` describes it."""

from __future__ import annotations

from dataclasses import dataclass

from provision.model.job import Job, read_job
from provision.model.launcher import Launcher, read_launcher
from provision.model.mpi import Mpi, read_mpi
from provision.model.patterns import MODULE, NAME
from provision.model.reader import Reader
from provision.model.scheduler import SchedulerName
from provision.model.smoke import Smoke, read_smoke


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiler:
    """The name of the C++ compiler once the arch's modules are loaded."""

    cxx: str


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


def read_arch(name: str, archs: Reader, scheduler: SchedulerName) -> Arch:
    """The arch of `[archs.<name>]` at a site with this scheduler."""
    table = archs.table(name)
    compiler = table.table("compiler")
    arch = Arch(
        name=name,
        target=table.text("target", pattern=NAME),
        modules=table.texts("modules", pattern=MODULE),
        python=table.optional("python", expand=True),
        compiler=Compiler(cxx=compiler.text("cxx", "g++")),
        mpi=read_mpi(table.table("mpi")),
        launcher=read_launcher(table.table("launcher"), scheduler),
        job=read_job(table.table("job")),
        smoke=read_smoke(table.table("smoke")),
        environ=table.environment("environ"),
    )
    if not NAME.fullmatch(name):
        archs.fault(name, "cannot be the name of an arch: use letters, digits and `_.+-`")
    for part in (compiler, table):
        part.done()
    return arch
