"""The GPUs of an arch's nodes, as `[archs.<arch>.gpu]` describes them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from provision.model.patterns import NAME
from provision.model.reader import Reader

CAPABILITY = re.compile(r"\d{2,3}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """The GPUs of one node: how many, what the scheduler calls them, their compute capabilities as Spack spells them
    (`80`), and where CUDA and NCCL are: text that is expanded once the arch's modules are loaded (`${CUDA_HOME}`)."""

    per_node: int
    model: str | None
    capabilities: tuple[str, ...]
    cuda_home: str | None
    nccl_home: str | None
    nccl_link: Literal["SHARED", "STATIC"]


def read_gpu(table: Reader) -> Gpu | None:
    """The GPUs of `[archs.<arch>.gpu]`, None where that table is left out."""
    if not table.names():
        return None
    gpu = Gpu(
        per_node=table.integer("per_node", least=1),
        model=table.optional("model", pattern=NAME),
        capabilities=table.texts("capabilities", pattern=CAPABILITY),
        cuda_home=table.optional("cuda_home"),
        nccl_home=table.optional("nccl_home"),
        nccl_link=table.text("nccl_link", "SHARED", choices=("SHARED", "STATIC")),  # type: ignore[arg-type]
    )
    table.done()
    return gpu
