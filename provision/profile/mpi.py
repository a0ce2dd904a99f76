"""The MPI of an arch (`[archs.<arch>.mpi]`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from provision.profile.patterns import NAME
from provision.profile.reader import Reader

MpiFamily = Literal["mpich", "openmpi"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mpi:
    """The provider of MPI.

    `site`: the compiler wrapper `cxx`, which is on PATH after the modules are loaded. `pypi`: a wheel that is installed
    into the environment from the lock named `requirements`.
    """

    provider: Literal["site", "pypi"]
    family: MpiFamily
    cxx: str
    requirements: str | None


def read_mpi(table: Reader) -> Mpi:
    """Read `[archs.<arch>.mpi]`."""
    provider = table.text("provider", choices=("site", "pypi"))
    mpi = Mpi(
        provider=provider,  # type: ignore[arg-type]
        family=table.text("family", "mpich", choices=("mpich", "openmpi")),  # type: ignore[arg-type]
        cxx=table.text("cxx", "mpicxx"),
        requirements=table.optional("requirements", pattern=NAME),
    )
    if provider == "site" and mpi.requirements is not None:
        table.fault("requirements", "is only for provider `pypi`; the site's MPI comes from its modules")
    if provider == "pypi" and mpi.requirements is None:
        table.fault(
            "requirements", "missing; with provider `pypi` it names the lock in `requirements/` that contains MPI"
        )
    table.done()
    return mpi
