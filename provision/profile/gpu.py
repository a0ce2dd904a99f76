"""The GPUs of an arch's nodes (`[archs.<arch>.gpu]`)."""

from dataclasses import dataclass
from typing import Annotated, Literal

from provision.knowledge.whole_numbers import whole_number
from provision.profile.patterns import Form, Name
from provision.profile.reader import Mark, Positive, Via

CAPABILITY = Form(r"[1-9][0-9]{1,2}", "of a compute capability without the point: `80` for 8.0")
FOLDER = Form(r"(/|\$\{[A-Za-z_][A-Za-z0-9_]*\})[^\x00-\x1f]*")

NcclLink = Literal["SHARED", "STATIC"]


def in_numeric_order(capabilities: tuple[str, ...]) -> tuple[str, ...]:
    """Each capability once: the order in the profile has no meaning."""
    return tuple(sorted(set(capabilities), key=lambda text: whole_number(text) or 0))  # 0: a fault


Capabilities = Annotated[
    tuple[str, ...], Via(Annotated[tuple[Annotated[str, CAPABILITY], ...], Mark.NOT_EMPTY], in_numeric_order)
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """The GPUs of one node: their number, the scheduler's name for the model, and their compute capabilities.

    Device code is built for the capabilities, which are spelt as in Spack (`80`). `cuda_home` and `nccl_home` may contain
    variables that the arch's modules set (`${CUDA_HOME}`, `${EBROOTNCCL}`); if they are None, the usual folders are
    searched. `nccl_link` is SHARED if a network plugin belongs to the site's NCCL.
    """

    per_node: Positive
    model: Name | None = None
    capabilities: Capabilities
    cuda_home: Annotated[str, FOLDER] | None = None
    nccl_home: Annotated[str, FOLDER] | None = None
    nccl_link: NcclLink = "SHARED"
