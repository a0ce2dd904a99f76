"""The number of threads of an arch's ranks, and who sets it (`[archs.<arch>.threads]`)."""

from dataclasses import dataclass
from typing import Literal

from provision.profile.reader import Count, Environ


@dataclass(frozen=True, slots=True, kw_only=True)
class Threads:
    """The site's settings of threads. `owner`: whether the modulefile sets them and jobs do not, or each job sets them.

    `omp` is `OMP_NUM_THREADS` of one rank that uses the whole node; `inter` and `intra` are TensorFlow's thread pools
    (`NUM_INTER_THREADS`, `NUM_INTRA_THREADS`); 0 means computed from the node's hardware. `environ` are related variables
    (`KMP_…`).
    """

    owner: Literal["module", "job"] = "job"
    omp: Count = 0
    inter: Count = 0
    intra: Count = 0
    environ: Environ = ()
