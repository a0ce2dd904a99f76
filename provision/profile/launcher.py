"""The program that starts ranks on an arch (`[archs.<arch>.launcher]`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from provision.profile.patterns import OPTION
from provision.profile.reader import Reader
from provision.profile.scheduler import SchedulerName

LauncherName = Literal["mpiexec", "srun", "mpirun", "mpiexec-pals", "aprun", "none"]
# The launchers that a site with this scheduler can name; the first is the default.
LAUNCHERS: dict[SchedulerName, tuple[LauncherName, ...]] = {
    "none": ("mpiexec", "mpirun", "none"),
    "slurm": ("srun", "mpiexec", "mpirun", "none"),
    "pbs": ("mpiexec-pals", "mpiexec", "mpirun", "none"),
    "cobalt": ("aprun", "mpirun", "none"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Launcher:
    """The program that starts ranks, with the site's options for it (`--mpi=pmi2`).

    `mpiexec` is Hydra of MPICH, `mpirun` is Open MPI's, `mpiexec-pals` is HPE's, and `none` starts one process.
    """

    name: LauncherName
    options: tuple[str, ...]


def read_launcher(table: Reader, scheduler: SchedulerName) -> Launcher:
    """Read `[archs.<arch>.launcher]` of a site with this scheduler."""
    known = LAUNCHERS[scheduler]
    launcher = Launcher(
        name=table.choice("name", known, known[0]),
        options=table.texts("options", pattern=OPTION),
    )
    table.done()
    return launcher
