"""The number of threads of an arch's ranks, and who sets it (`[archs.<arch>.threads]`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from provision.profile.reader import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Threads:
    """The site's settings of threads. `owner`: whether the modulefile sets them and jobs do not, or each job sets them.

    `omp` is `OMP_NUM_THREADS` of one rank that uses the whole node; `inter` and `intra` are TensorFlow's thread pools
    (`NUM_INTER_THREADS`, `NUM_INTRA_THREADS`); 0 means computed from the node's hardware. `environ` are related variables
    (`KMP_…`).
    """

    owner: Literal["module", "job"]
    omp: int
    inter: int
    intra: int
    environ: tuple[tuple[str, str], ...]


def read_threads(table: Reader) -> Threads:
    """Read `[archs.<arch>.threads]`."""
    threads = Threads(
        owner=table.choice("owner", ("module", "job"), "job"),
        omp=table.integer("omp", 0),
        inter=table.integer("inter", 0),
        intra=table.integer("intra", 0),
        environ=table.environment("environ"),
    )
    table.done()
    return threads
