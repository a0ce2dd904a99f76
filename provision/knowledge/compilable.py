"""The packages that a stack can name in `[compiled]`: they are compiled from source with the wrapper of the site's MPI.

Horovod is compiled in the same way, with flags and patches of its own (`horovod/flags.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Compilable:
    """How one of them is compiled.

    `module` is the compiled module, whose libraries the inspection compares. `environ` configures the build; `{mpicc}` is the
    wrapper for C.
    """

    module: str
    environ: Mapping[str, str]


COMPILABLE: Mapping[str, Compilable] = {
    "mpi4py": Compilable(module="mpi4py.MPI", environ={"MPICC": "{mpicc}"}),
}
