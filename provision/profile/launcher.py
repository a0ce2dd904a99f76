"""The program that starts ranks on an arch (`[archs.<arch>.launcher]`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from provision.profile.patterns import Option
from provision.profile.reader import Choices
from provision.profile.scheduler import SchedulerName

LauncherName = Literal["mpiexec", "srun", "mpirun", "mpiexec-pals", "aprun", "none"]
# The launchers that a site with this scheduler can name; the first is the default.
LAUNCHERS: dict[SchedulerName, tuple[LauncherName, ...]] = {
    "none": ("mpiexec", "mpirun", "none"),
    "slurm": ("srun", "mpiexec", "mpirun", "none"),
    "pbs": ("mpiexec-pals", "mpiexec", "mpirun", "none"),
    "cobalt": ("aprun", "mpirun", "none"),
}


def launchers_of(profile: Mapping[str, Any]) -> tuple[LauncherName, ...]:
    """The launchers that a parsed profile can name: those of its scheduler."""
    scheduler = profile.get("scheduler")
    system = scheduler.get("system") if isinstance(scheduler, Mapping) else None
    return next((names for name, names in LAUNCHERS.items() if name == system), LAUNCHERS["none"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Launcher:
    """The program that starts ranks, with the site's options for it (`--mpi=pmi2`).

    `mpiexec` is Hydra of MPICH, `mpirun` is Open MPI's, `mpiexec-pals` is HPE's, and `none` starts one process.
    """

    name: Annotated[LauncherName, Choices(launchers_of)]
    options: tuple[Option, ...] = ()
