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
    mpi = Mpi(
        provider=table.choice("provider", ("site", "pypi")),
        family=table.choice("family", ("mpich", "openmpi"), "mpich"),
        cxx=table.text("cxx", "mpicxx"),
        requirements=table.optional("requirements", pattern=NAME),
    )
    if mpi.provider == "site" and "provider" in table.names() and mpi.requirements is not None:
        table.fault("requirements", "is only for provider `pypi`; the site's MPI comes from its modules")
    if mpi.provider == "pypi" and mpi.requirements is None:
        table.missing("requirements", "with provider `pypi` it names the lock in `requirements/` that contains MPI")
    table.done()
    return mpi
