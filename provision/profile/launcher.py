"""The program that starts ranks on an arch (`[archs.<arch>.launcher]`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from provision.profile.choices import LAUNCHERS, LauncherName
from provision.profile.patterns import Option
from provision.profile.reader import Choices


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
