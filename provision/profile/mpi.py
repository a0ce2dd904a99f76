"""The MPI of an arch (`[archs.<arch>.mpi]`)."""

from dataclasses import dataclass
from typing import Literal

from provision.profile.absolute import Program
from provision.profile.patterns import Name
from provision.profile.reader import Reader

MpiFamily = Literal["mpich", "openmpi"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mpi:
    """The provider of MPI.

    `site`: the compiler wrapper `cxx`, which is on PATH after the modules are loaded. `pypi`: a wheel that is installed
    into the environment from the lock named `requirements`.
    """

    provider: Literal["site", "pypi"]
    family: MpiFamily = "mpich"
    cxx: Program = "mpicxx"
    requirements: Name | None = None

    def add_faults(self, table: Reader) -> None:
        """Record a lock without `pypi`, and `pypi` without a lock."""
        if table.data.get("provider") == "site" and self.requirements is not None:
            table.fault("requirements", "is only for provider `pypi`; the site's MPI comes from its modules")
        if self.provider == "pypi" and self.requirements is None:
            table.missing("requirements", "with provider `pypi` it names the lock in `requirements/` that contains MPI")
