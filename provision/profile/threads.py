"""Who sets the threads of an arch's ranks, and to what, as `[archs.<arch>.threads]` describes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from provision.profile.reader import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Threads:
    """The site's word on threads. `owner`: whether the modulefile sets them and jobs leave them alone, or each job does.

    `omp` is `OMP_NUM_THREADS` of one rank that has the whole node, `inter` and `intra` are TensorFlow's pools
    (`NUM_INTER_THREADS`, `NUM_INTRA_THREADS`); 0: by the node's shape. `environ` is what belongs to it (`KMP_…`).
    """

    owner: Literal["module", "job"]
    omp: int
    inter: int
    intra: int
    environ: tuple[tuple[str, str], ...]


def read_threads(table: Reader) -> Threads:
    """The threads of `[archs.<arch>.threads]`."""
    threads = Threads(
        owner=table.text("owner", "job", choices=("module", "job")),  # type: ignore[arg-type]
        omp=table.integer("omp", 0),
        inter=table.integer("inter", 0),
        intra=table.integer("intra", 0),
        environ=table.environment("environ"),
    )
    table.done()
    return threads
