"""The backends and launchers by name, as a stack, a profile and an option name them. Cheap to import: the help lists them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from provision.profile.scheduler import SchedulerName

BackendName = Literal["venv", "spack"]
# What can make an environment of a stack; the first is used if the stack names none. `backends/` has one folder for each.
BACKENDS: tuple[BackendName, ...] = get_args(BackendName)
LauncherName = Literal["mpiexec", "srun", "mpirun", "mpiexec-pals", "aprun", "none"]
# The launchers that a site with this scheduler can name; the first is the default.
LAUNCHERS: dict[SchedulerName, tuple[LauncherName, ...]] = {
    "none": ("mpiexec", "mpirun", "none"),
    "slurm": ("srun", "mpiexec", "mpirun", "none"),
    "pbs": ("mpiexec-pals", "mpiexec", "mpirun", "none"),
    "cobalt": ("aprun", "mpirun", "none"),
}
