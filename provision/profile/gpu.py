"""The GPUs of an arch's nodes (`[archs.<arch>.gpu]`)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from provision.knowledge.whole_numbers import whole_number
from provision.profile.patterns import NAME, form
from provision.profile.reader import Reader

CAPABILITY = form(r"[1-9][0-9]{1,2}", "of a compute capability without the point: `80` for 8.0")
FOLDER = re.compile(r"(/|\$\{[A-Za-z_][A-Za-z0-9_]*\})[^\x00-\x1f]*")

NcclLink = Literal["SHARED", "STATIC"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """The GPUs of one node: their number, the scheduler's name for the model, and their compute capabilities.

    Device code is built for the capabilities, which are spelt as in Spack (`80`). `cuda_home` and `nccl_home` may contain
    variables that the arch's modules set (`${CUDA_HOME}`, `${EBROOTNCCL}`); if they are None, the usual folders are
    searched. `nccl_link` is SHARED if a network plugin belongs to the site's NCCL.
    """

    per_node: int
    model: str | None
    capabilities: tuple[str, ...]
    cuda_home: str | None
    nccl_home: str | None
    nccl_link: NcclLink


def read_gpu(table: Reader) -> Gpu | None:
    """Read `[archs.<arch>.gpu]`; None if that table is missing or empty."""
    if not table.names():
        return None
    gpu = Gpu(
        per_node=table.integer("per_node", least=1),
        model=table.optional("model", pattern=NAME),
        # In numeric order without repeats: the order in the profile has no meaning.
        capabilities=tuple(
            sorted(set(table.texts("capabilities", required=True, pattern=CAPABILITY)), key=int_or_zero)
        ),
        cuda_home=table.optional("cuda_home", pattern=FOLDER),
        nccl_home=table.optional("nccl_home", pattern=FOLDER),
        nccl_link=table.choice("nccl_link", ("SHARED", "STATIC"), "SHARED"),
    )
    table.done()
    return gpu


def int_or_zero(text: str) -> int:
    """A capability as a number; 0 if it is not one, which is already recorded as a fault."""
    return whole_number(text) or 0
