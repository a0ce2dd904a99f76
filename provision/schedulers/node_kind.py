"""A kind of node in one queue, as the scheduler describes it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeKind:
    """Nodes of one partition that are alike: cores and threads are of the whole node, memory is in GiB.

    `default` says whether jobs without a partition go there; `gpu_type` is the scheduler's name of the GPUs, in lower case.
    """

    partition: str
    default: bool
    sockets: int
    cores: int
    threads: int
    memory_gib: int
    gpus: int
    gpu_type: str
    features: tuple[str, ...]
