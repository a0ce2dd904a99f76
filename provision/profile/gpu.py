"""The GPUs of an arch's nodes, as `[archs.<arch>.gpu]` describes them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from provision.profile.patterns import NAME
from provision.profile.reader import Reader

CAPABILITY = re.compile(r"[1-9]\d{1,2}")
FOLDER = re.compile(r"(/|\$\{[A-Za-z_][A-Za-z0-9_]*\})[^\x00-\x1f]*")

NcclLink = Literal["SHARED", "STATIC"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """The GPUs of one node: how many, what the scheduler calls them, and their compute capabilities as Spack spells
    them (`80`), for which device code is built.

    `cuda_home` and `nccl_home` are text that the environment expands once the arch's modules are loaded
    (`${CUDA_HOME}`, `${EBROOTNCCL}`), or None: looked for. `nccl_link`: SHARED where a network plugin goes with the
    site's NCCL.
    """

    per_node: int
    model: str | None
    capabilities: tuple[str, ...]
    cuda_home: str | None
    nccl_home: str | None
    nccl_link: NcclLink


def read_gpu(table: Reader) -> Gpu | None:
    """The GPUs of `[archs.<arch>.gpu]`, None where that table is left out or empty."""
    if not table.names():
        return None
    gpu = Gpu(
        per_node=table.integer("per_node", least=1),
        model=table.optional("model", pattern=NAME),
        # Numeric order, each once: the order in a file decides nothing.
        capabilities=tuple(
            sorted(set(table.texts("capabilities", required=True, pattern=CAPABILITY)), key=int_or_zero)
        ),
        cuda_home=table.optional("cuda_home", pattern=FOLDER),
        nccl_home=table.optional("nccl_home", pattern=FOLDER),
        nccl_link=table.text("nccl_link", "SHARED", choices=("SHARED", "STATIC")),  # type: ignore[arg-type]
    )
    table.done()
    return gpu


def int_or_zero(text: str) -> int:
    """A capability as a number; what is none is a fault already, and sorts first."""
    return int(text) if text.isdigit() else 0
